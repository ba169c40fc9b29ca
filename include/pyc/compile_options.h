/* What may be chosen about a compile, by name: docs/options.md lists the options, pyc_option does
 * so at run time. */
#ifndef PYC_COMPILE_OPTIONS_H_
#define PYC_COMPILE_OPTIONS_H_

#include "pyc/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values for all options. Functions that take it take NULL for the defaults. */
typedef struct pyc_compile_options pyc_compile_options;
PYC_API pyc_status pyc_compile_options_create(pyc_compile_options** options, pyc_error** error);
PYC_API pyc_status pyc_compile_options_copy(const pyc_compile_options* from,
                                            pyc_compile_options** options, pyc_error** error);
PYC_API void pyc_compile_options_destroy(pyc_compile_options* options);

/* Sets one option: integers in decimal, switches as "on" or "off". A list gets one more item.
 * PYC_STATUS_UNKNOWN_OPTION, with the nearest, for a name or a word that is none;
 * PYC_STATUS_INVALID_ARGUMENT for a value out of range. A refusal changes nothing. */
PYC_API pyc_status pyc_compile_options_set(pyc_compile_options* options, const char* name,
                                           const char* value, pyc_error** error);
/* Back to the default; a list becomes empty. */
PYC_API pyc_status pyc_compile_options_reset(pyc_compile_options* options, const char* name,
                                             pyc_error** error);
/* The value as pyc_compile_options_set takes it; the items of a list are lines. */
PYC_API pyc_status pyc_compile_options_get(const pyc_compile_options* options, const char* name,
                                           char** value, pyc_error** error);

/* Adds the clauses of a contract: lines NAME = VALUE, each an option; `#` begins a comment. A
 * compile keeps every clause, and the decision log has an answer to each ("contract:NAME"), or it
 * is refused and the message names the clause. PYC_STATUS_PARSE_ERROR, with the line, for a line
 * that is none; PYC_STATUS_INVALID_ARGUMENT also for a clause that stands twice or that an option
 * set otherwise contradicts. A refusal changes nothing. */
PYC_API pyc_status pyc_compile_options_contract(pyc_compile_options* options, const char* text,
                                                pyc_error** error);

/* What is compiled with the options from now on calls `progress` after each kernel that was made:
 * `done` of `all`. Calls come from any thread, several at once, and must return soon; NULL: none.
 * `release`, if not NULL, is called with `user` once nothing refers to it any more. No option by
 * name, since it decides nothing. */
PYC_API pyc_status pyc_compile_options_progress(
    pyc_compile_options* options, void (*progress)(void* user, int64_t done, int64_t all),
    void* user, void (*release)(void* user), pyc_error** error);

/* What is compiled with the options, or copies of them, from now on shares machine code: a graph
 * that differs from one before in sizes alone is given that one's code, with its sizes as
 * arguments. Results have the bits they have without. For the device that is set when it is called.
 */
PYC_API pyc_status pyc_compile_options_share_code(pyc_compile_options* options, pyc_error** error);

/* How an option's value is written. */
enum {
  PYC_OPTION_SWITCH = 0,
  PYC_OPTION_INTEGER = 1,
  PYC_OPTION_WORD = 2, /* one of its words */
  PYC_OPTION_TEXT = 3,
  PYC_OPTION_LIST = 4,
  PYC_OPTION_NUMBER = 5 /* decimal, 0 or more; of training options */
};
/* What an option reaches. */
enum {
  PYC_OPTION_PROGRAM = 0, /* the program: part of the key that caches go by */
  PYC_OPTION_LOAD = 1,    /* the same, and free for a program that was compiled ahead of time */
  PYC_OPTION_RUN = 2      /* what is around the program */
};
/* Who offers it. */
enum {
  PYC_OPTION_EVERYWHERE = 0,
  PYC_OPTION_AHEAD = 1,  /* of the program's commands only compile and dump */
  PYC_OPTION_LIBRARY = 2 /* no flag of the program */
};
/* An option; everything in it lives as long as the process. */
typedef struct pyc_option_info {
  size_t struct_size;
  const char* name;
  const char* help;
  const char* initial; /* the default, as pyc_compile_options_get writes it */
  int32_t kind;        /* PYC_OPTION_SWITCH, … */
  int32_t effect;      /* PYC_OPTION_PROGRAM, … */
  int32_t offer;       /* PYC_OPTION_EVERYWHERE, … */
  int32_t other_bits;  /* 1: results may change with it */
  int64_t lo;          /* of an integer: the least and the largest */
  int64_t hi;
  const char* const* words; /* of a word, and of an integer that takes some numbers only */
  size_t word_count;
  const char* form; /* of a list whose items have a form: "NAME=4"; else "" */
} pyc_option_info;
PYC_API size_t pyc_option_count(void);
PYC_API pyc_status pyc_option(size_t index, pyc_option_info* info, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
