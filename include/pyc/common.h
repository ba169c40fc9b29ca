/* What every header of PyC's C ABI shares: status codes, errors, element types, text.
 *
 * Rules of the whole ABI:
 *  - Handles are opaque and belong to the caller, who destroys each once; destroying NULL does
 * nothing.
 *  - Every call that can be refused returns a pyc_status. Its last parameter may be NULL, or points
 * to a pyc_error* that is set to NULL on success and to an error the caller destroys otherwise
 * (NULL when there is no memory left for one: the status is then all there is). Results are written
 * on success only.
 *  - A struct that begins with `struct_size` grows at its end in later versions, never otherwise.
 * The caller sets struct_size to sizeof the struct it was compiled with; all other fields 0 ask for
 * the defaults. Sizes smaller than the first version's are refused; so are bytes other than 0
 * beyond what the library knows.
 *  - Text that is handed out as `const char*` lives as long as the handle it came from; text that
 * is handed out through a `char**` belongs to the caller, who frees it with pyc_text_destroy. All
 * text is UTF-8 with a NUL.
 *  - Any number of threads may use one model at once. Other handles are used by one thread at a
 * time.
 *  - No call aborts, prints or throws. */
#ifndef PYC_COMMON_H_
#define PYC_COMMON_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PYC_API __attribute__((visibility("default")))
#else
#define PYC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when something is added; nothing is ever removed or changed. */
#define PYC_ABI_VERSION 7
PYC_API int32_t pyc_abi_version(void);
/* "0.1.0" */
PYC_API const char* pyc_version(void);
/* How the library was built, a fact a line: "compiler GNU 12.2.0". For people. */
PYC_API const char* pyc_build_facts(void);

/* The numbers are fixed for ever; docs/errors.md explains each. */
typedef int32_t pyc_status;
enum {
  PYC_STATUS_OK = 0,
  PYC_STATUS_INVALID_ARGUMENT = 1,
  PYC_STATUS_PARSE_ERROR = 2,
  PYC_STATUS_VERIFY_FAILED = 3,
  PYC_STATUS_SHAPE_MISMATCH = 4,
  PYC_STATUS_DTYPE_MISMATCH = 5,
  PYC_STATUS_RANK_MISMATCH = 6,
  PYC_STATUS_SIZE_MISMATCH = 7,
  PYC_STATUS_MISALIGNED = 8,
  PYC_STATUS_NULL_POINTER = 9,
  PYC_STATUS_UNKNOWN_OPTION = 10,
  PYC_STATUS_UNKNOWN_OP = 11,
  PYC_STATUS_UNSUPPORTED = 12,
  PYC_STATUS_BUDGET_EXCEEDED = 13,
  PYC_STATUS_OUT_OF_MEMORY = 14,
  PYC_STATUS_COMPILE_FAILED = 15,
  PYC_STATUS_RUNTIME_FAILED = 16,
  PYC_STATUS_IO_ERROR = 17,
  PYC_STATUS_NOT_FOUND = 18,
  PYC_STATUS_INTERNAL = 19
};
/* "shape_mismatch"; "unknown" for a number that is no status. */
PYC_API const char* pyc_status_name(pyc_status status);
/* What such a refusal means, without a full stop; "" for a number that is no status. */
PYC_API const char* pyc_status_cause(pyc_status status);
/* What to do about it, in one sentence; "" for PYC_STATUS_OK. */
PYC_API const char* pyc_status_cure(pyc_status status);

/* Why a call was refused. */
typedef struct pyc_error pyc_error;
PYC_API pyc_status pyc_error_code(const pyc_error* error);
/* What was expected and found; fit to be printed, as pyc_printable_text makes it. */
PYC_API const char* pyc_error_message(const pyc_error* error);
/* The node, input or output the error is about; "" when it is about none. */
PYC_API const char* pyc_error_node(const pyc_error* error);
/* pyc_status_cure of the code. */
PYC_API const char* pyc_error_cure(const pyc_error* error);
PYC_API void pyc_error_destroy(pyc_error* error);

PYC_API void pyc_text_destroy(char* text);

/* `text` as it may be printed: control characters and bytes that are not UTF-8 stand as \n, \t, \r
 * or \xNN. Names are handed out as the model's file has them; this is for showing them.
 * `keep_lines` not 0: \n and \t stay. For pyc_text_destroy. */
PYC_API pyc_status pyc_printable_text(const char* text, size_t size, int32_t keep_lines, char** out,
                                      pyc_error** error);

/* Element types; the numbers are fixed for ever. */
typedef int32_t pyc_dtype;
enum {
  PYC_DTYPE_ANY = -1, /* only where a function says so */
  PYC_DTYPE_BOOL = 0,
  PYC_DTYPE_I2 = 1,
  PYC_DTYPE_I4 = 2,
  PYC_DTYPE_I8 = 3,
  PYC_DTYPE_I16 = 4,
  PYC_DTYPE_I32 = 5,
  PYC_DTYPE_I64 = 6,
  PYC_DTYPE_U2 = 7,
  PYC_DTYPE_U4 = 8,
  PYC_DTYPE_U8 = 9,
  PYC_DTYPE_U16 = 10,
  PYC_DTYPE_U32 = 11,
  PYC_DTYPE_U64 = 12,
  PYC_DTYPE_F4E2M1 = 13,
  PYC_DTYPE_F8E8M0 = 14,
  PYC_DTYPE_F8E4M3FN = 15,
  PYC_DTYPE_F8E4M3FNUZ = 16,
  PYC_DTYPE_F8E5M2 = 17,
  PYC_DTYPE_F8E5M2FNUZ = 18,
  PYC_DTYPE_F16 = 19,
  PYC_DTYPE_BF16 = 20,
  PYC_DTYPE_F32 = 21,
  PYC_DTYPE_F64 = 22,
  /* Of values, not of graphs: real and imaginary part one after the other, as f32 or f64. */
  PYC_DTYPE_C64 = 23,
  PYC_DTYPE_C128 = 24
};
/* The dtypes are the numbers below this. */
PYC_API int32_t pyc_dtype_count(void);
/* "f32"; NULL for a number that is no dtype. */
PYC_API const char* pyc_dtype_name(pyc_dtype dtype);
/* Bytes of one element; 0 for a number that is no dtype. */
PYC_API int64_t pyc_dtype_size(pyc_dtype dtype);
/* PYC_STATUS_UNKNOWN_OPTION, with a suggestion, for a name that is none. */
PYC_API pyc_status pyc_dtype_from_name(const char* name, pyc_dtype* dtype, pyc_error** error);

/* A value of a graph, an input or an output of a model. */
typedef struct pyc_value_info {
  size_t struct_size;
  const char* name;
  const int64_t* shape; /* dims, outermost first; -1: open, known at run time only */
  int64_t rank;         /* -1: not known, or no tensor */
  int64_t bytes;        /* -1: not known */
  pyc_dtype dtype;      /* PYC_DTYPE_ANY: not known, or no tensor of numbers */
  int32_t kind;         /* PYC_VALUE_* */
  int32_t type;         /* PYC_TYPE_* */
  int32_t reserved;
  /* For each dim the name of an open one, or ""; the same name is the same size everywhere. NULL
   * for values of graphs, which have fixed shapes, and where the rank is not known. */
  const char* const* symbols;
  const char* type_text; /* "f32[batch,3]", "sequence(i64[?])"; NULL for values of graphs */
} pyc_value_info;
enum { PYC_VALUE_INPUT = 0, PYC_VALUE_CONSTANT = 1, PYC_VALUE_RESULT = 2 };
/* What a value is. */
enum {
  PYC_TYPE_TENSOR = 0,   /* of numbers */
  PYC_TYPE_STRINGS = 1,  /* a tensor of strings */
  PYC_TYPE_SEQUENCE = 2, /* values one after the other */
  PYC_TYPE_OPTIONAL = 3, /* declared: a value or nothing */
  PYC_TYPE_NOTHING = 4,  /* of a pyc_result: an optional without a value */
  PYC_TYPE_UNKNOWN = 5
};

/* The candidate nearest to `name`, the first of equals, or NULL when none is near: for messages. */
PYC_API const char* pyc_closest_name(const char* name, const char* const* candidates, size_t count);

#ifdef __cplusplus
}
#endif

#endif
