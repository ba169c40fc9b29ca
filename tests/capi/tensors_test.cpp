// Tensors and tensor files through the C ABI, hostile ones among them.

#include <algorithm>
#include <cstring>
#include <random>

#include "base/files.h"
#include "capi/calls.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

// Bytes as a file holds them.
std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int v : values) out += static_cast<char>(v);
  return out;
}

Refusal load(const std::string& data, pyc_dtype dtype = PYC_DTYPE_ANY) {
  return refusal([&](pyc_error** e) {
    pyc_tensor* tensor = nullptr;
    const pyc_status status = pyc_tensor_load_bytes(data.data(), data.size(), dtype, &tensor, e);
    pyc_tensor_destroy(tensor);
    return status;
  });
}

// The tensor a file with these bytes holds.
Tensor loaded(const std::string& data, pyc_dtype dtype = PYC_DTYPE_ANY) {
  const TempFolder folder;
  const std::string path = folder.file("tensor");
  EXPECT_TRUE(write_file_atomic(path, data).ok());
  return Tensor::load(path, dtype);
}

std::string npy(const std::string& header, const std::string& elements, int major = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  const auto size = header.size();
  out += static_cast<char>(size & 0xff);
  out += static_cast<char>(size >> 8 & 0xff);
  if (major > 1) out += std::string(2, '\0');
  return out + header + elements;
}

TEST(TensorFiles, NpyRoundTripsEveryDtypeAndRank) {
  const TempFolder folder;
  const std::string path = folder.file("tensor.npy");
  for (pyc_dtype d = 0; d < pyc_dtype_count(); ++d) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{2, 0, 3}, Shape{1, 2, 3, 4}}) {
      const Tensor tensor = Tensor::random(d, shape, 11);
      tensor.save_npy(path);
      const Tensor back = Tensor::load(path, d);
      EXPECT_EQ(back.dtype(), d);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(back.digest(), tensor.digest()) << pyc_dtype_name(d);
    }
  }
}

// What numpy writes: np.save of np.array([[1, 2, 3], [4, 5, 6]], order="F") and of its big-endian
// form.
TEST(TensorFiles, NpyOfNumpyIsRead) {
  const std::string one_to_six = bytes({1, 4, 2, 5, 3, 6});
  const Tensor fortran =
      loaded(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", one_to_six));
  EXPECT_EQ(fortran.numbers(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const Tensor version2 = loaded(
      npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }\n", bytes({255, 255}), 2));
  EXPECT_EQ(version2.numbers(), (std::vector<double>{-1}));
  EXPECT_EQ(load(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", "ab")).status,
            PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(load(npy("{'descr': '<M8', 'fortran_order': False, 'shape': (), }", "abcdefgh")).status,
            PYC_STATUS_UNSUPPORTED);
  const std::string nameless =
      npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", bytes({0x80, 0x3f}));
  EXPECT_EQ(load(nameless).status, PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(loaded(nameless, PYC_DTYPE_BF16).numbers(), (std::vector<double>{1}));
  EXPECT_EQ(
      load(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", "a"), PYC_DTYPE_F32)
          .status,
      PYC_STATUS_DTYPE_MISMATCH);
}

TEST(TensorFiles, MalformedNpyIsRefused) {
  const char* headers[] = {
      "",
      "{",
      "{}",
      "{'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
      "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
      "{'descr': '<f4', 'fortran_order': True, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
      "{'other': '<f4', 'fortran_order': False, 'shape': (1,)}",
  };
  for (const char* header : headers) {
    EXPECT_EQ(load(npy(header, "abcd")).status, PYC_STATUS_PARSE_ERROR) << header;
  }
  EXPECT_EQ(load(npy("{}", "", 9)).status, PYC_STATUS_UNSUPPORTED);
  EXPECT_EQ(load("\x93NUMPY").status, PYC_STATUS_PARSE_ERROR);
  EXPECT_EQ(load(npy("", "").substr(0, 9)).status, PYC_STATUS_PARSE_ERROR);
  EXPECT_EQ(load(std::string("\x93NUMPY\x01\x00\xff\xff", 10)).status, PYC_STATUS_PARSE_ERROR);
}

// TensorProto: dims 1, data_type 2, float_data 4, int32_data 5, name 8, raw_data 9.
TEST(TensorFiles, TensorProtoIsRead) {
  const std::string raw = bytes({0x08, 2, 0x08, 1, 0x10, 3, 0x42, 1, 'x', 0x4a, 2, 7, 0xff});
  EXPECT_EQ(loaded(raw).shape(), (Shape{2, 1}));
  EXPECT_EQ(loaded(raw).numbers(), (std::vector<double>{7, -1}));
  const std::string packed_dims = bytes({0x0a, 2, 2, 1, 0x10, 3, 0x4a, 2, 7, 8});
  EXPECT_EQ(loaded(packed_dims).shape(), (Shape{2, 1}));
  const std::string floats = bytes({0x08, 1, 0x10, 1, 0x22, 4, 0, 0, 0x80, 0x3f});
  EXPECT_EQ(loaded(floats).numbers(), (std::vector<double>{1}));
  // f16 1.0 is 0x3c00 in int32_data, here not packed.
  const std::string half = bytes({0x10, 10, 0x28, 0x80, 0x78});
  EXPECT_EQ(loaded(half).numbers(), (std::vector<double>{1}));
  EXPECT_EQ(loaded(half).shape(), (Shape{}));
  const std::string empty = bytes({0x08, 0, 0x10, 7});
  EXPECT_EQ(loaded(empty).shape(), (Shape{0}));
}

TEST(TensorFiles, MalformedTensorProtoIsRefused) {
  const std::string files[] = {
      "",
      "text",
      bytes({0x08, 2, 0x10, 3, 0x4a, 1, 7}),           // too few bytes
      bytes({0x08, 2, 0x10, 3, 0x4a, 9, 7}),           // ends within a field
      bytes({0x08, 1, 0x10, 1, 0x28, 1}),              // list of another type
      bytes({0x08, 1, 0x10, 3, 0x4a, 1, 7, 0x28, 1}),  // raw and list
      bytes({0x08, 1}),                                // no type
      bytes({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x10, 3}),  // dim -1
      bytes({0x08, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x10, 1}),  // a large dim without elements
      bytes({0x10, 1, 0x22, 3, 0, 0, 0x80}),                 // packed floats, cut
      bytes({0x10, 15}),                                     // complex128 without elements
      bytes({0x10, 14, 0x22, 4, 0, 0, 0x80, 0x3f}),          // half a complex64
  };
  for (const std::string& file : files) {
    EXPECT_EQ(load(file).status, PYC_STATUS_PARSE_ERROR) << testing::PrintToString(file);
  }
  EXPECT_EQ(load(bytes({0x10, 8, 0x32, 1, 'a'})).status, PYC_STATUS_UNSUPPORTED);  // strings
  EXPECT_EQ(load(bytes({0x10, 1, 0x70, 1})).status, PYC_STATUS_UNSUPPORTED);       // external
}

TEST(TensorFiles, ComplexNumbersArePairs) {
  const std::string elements = bytes({0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0});  // 1 - 2i
  const Tensor npy_file =
      loaded(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }\n", elements));
  EXPECT_EQ(npy_file.dtype(), PYC_DTYPE_C64);
  EXPECT_EQ(npy_file.numbers(), (std::vector<double>{1, -2}));
  const Tensor raw = loaded(bytes({0x08, 1, 0x10, 14, 0x4a, 8}) + elements);
  EXPECT_EQ(raw.dtype(), PYC_DTYPE_C64);
  EXPECT_EQ(raw.digest(), npy_file.digest());
  const Tensor listed = loaded(bytes({0x08, 1, 0x10, 14, 0x22, 8}) + elements);
  EXPECT_EQ(listed.digest(), npy_file.digest());
  EXPECT_EQ(
      load(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }\n", elements)).status,
      PYC_STATUS_PARSE_ERROR);
  EXPECT_EQ(
      load(npy("{'descr': '<c32', 'fortran_order': False, 'shape': (1,), }\n", elements)).status,
      PYC_STATUS_UNSUPPORTED);
}

// Whatever the bytes are, the answer is a tensor or a refusal.
TEST(TensorFiles, RandomDamageNeverCrashes) {
  const std::string good[] = {
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }\n", "abcdefgh"),
      bytes({0x08, 2, 0x08, 1, 0x10, 3, 0x42, 1, 'x', 0x4a, 2, 7, 0xff}),
      bytes({0x08, 1, 0x10, 1, 0x22, 4, 0, 0, 0x80, 0x3f}),
  };
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = good[random() % std::size(good)];
    for (unsigned n = random() % 4; n > 0; --n)
      file[random() % file.size()] = static_cast<char>(random());
    file.resize(random() % (file.size() + 1));
    pyc_tensor* tensor = nullptr;
    pyc_tensor_load_bytes(file.data(), file.size(), PYC_DTYPE_ANY, &tensor, nullptr);
    pyc_tensor_destroy(tensor);
  }
}

TEST(Tensors, AreAlignedZeroAndCounted) {
  auto before = sized<pyc_allocator_stats>();
  ASSERT_EQ(pyc_allocator_get_stats(&before, nullptr), PYC_STATUS_OK);
  {
    const Tensor tensor(PYC_DTYPE_F32, {3, 5});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.view().data) % 64, 0u);
    EXPECT_EQ(tensor.numbers(), std::vector<double>(15, 0.0));
    auto now = sized<pyc_allocator_stats>();
    ASSERT_EQ(pyc_allocator_get_stats(&now, nullptr), PYC_STATUS_OK);
    EXPECT_EQ(now.live_tensors, before.live_tensors + 1);
    EXPECT_EQ(now.live_bytes, before.live_bytes + 60);
    EXPECT_GE(now.peak_bytes, now.live_bytes);
    EXPECT_GT(now.allocations, before.allocations);
  }
  auto after = sized<pyc_allocator_stats>();
  ASSERT_EQ(pyc_allocator_get_stats(&after, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(Tensors, BadCallsAreRefused) {
  const int64_t huge[] = {int64_t{1} << 39, 1024};
  pyc_tensor* made = nullptr;
  EXPECT_EQ(pyc_tensor_create(PYC_DTYPE_F32, huge, 2, &made, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_tensor_create(PYC_DTYPE_F32, huge, 1, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(made, nullptr);
  const Tensor tensor(PYC_DTYPE_I8, {4});
  pyc_tensor_view view = tensor.view();
  double numbers[4];
  EXPECT_EQ(pyc_tensor_read_f64(&view, 2, 3, numbers, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_tensor_read_f64(&view, -1, 1, numbers, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_tensor_read_f64(&view, 0, INT64_MAX, numbers, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_tensor_read_f64(&view, 0, 4, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  view.bytes = 3;
  EXPECT_EQ(pyc_tensor_digest(&view, nullptr, nullptr), PYC_STATUS_SIZE_MISMATCH);
  EXPECT_EQ(pyc_tensor_fill_random(nullptr, 1, nullptr), PYC_STATUS_NULL_POINTER);
  view.bytes = 4;
  EXPECT_EQ(pyc_tensor_save_npy(&view, "/no/such/folder/x.npy", nullptr), PYC_STATUS_NOT_FOUND);
  EXPECT_THROW(Tensor::load("/no/such/file.npy"), Error);
  EXPECT_THROW(tensor.elements<float>(), Error);
  pyc_tensor_destroy(nullptr);
}

}  // namespace
}  // namespace pyc::test
