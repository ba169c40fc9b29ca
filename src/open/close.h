#pragma once

// What an open op's `close` works with: the inputs of one node as values of a graph being built,
// with known types, and the means to build its outputs. The first call that is refused makes all
// later ones do nothing; `close` returns `status()` at its end.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "open/open_graph.h"

namespace pyc::open {

// What closing needs from the outside.
class Folder {
 public:
  virtual ~Folder() = default;
  // The content of a value that follows from constants alone; nothing when it does not, or when
  // finding out would cost too much.
  virtual std::shared_ptr<const ir::ConstData> known(const ir::Graph& graph, ir::ValueId value) = 0;
  // Closes a region in place: its inputs are `inputs`, its outputs come back. Nothing, with no
  // error, when a node of it cannot be closed.
  virtual Result<std::optional<std::vector<ir::ValueId>>> inline_region(
      const OpenGraph& region, std::span<const ir::ValueId> inputs) = 0;
};

class CloseContext {
 public:
  CloseContext(ir::GraphBuilder& builder, const OpenNode& node, std::vector<ir::ValueId> inputs,
               Folder& folder)
      : builder_(builder),
        node_(node),
        inputs_(std::move(inputs)),
        outputs_(node.outputs.size(), ir::kNoId),
        folder_(folder) {}

  int version() const { return node_.version; }
  const OpenNode& node() const { return node_; }
  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != ir::kNoId; }
  // Refused when the input was left out.
  ir::ValueId input(size_t i);
  // All inputs; none may have been left out.
  std::vector<ir::ValueId> all_inputs();
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kAbsentId; }
  // By value: the builder's types move when it grows.
  ir::TensorType type(ir::ValueId v) const;
  DType dtype(ir::ValueId v) const { return look_at(v).dtype; }
  ir::Shape shape(ir::ValueId v) const { return look_at(v).shape; }
  int64_t rank(ir::ValueId v) const { return look_at(v).rank(); }

  // The elements of a value that must be known now. If they are not, the node waits until they are,
  // everything after does nothing and the result is empty.
  std::vector<int64_t> ints(ir::ValueId v);
  std::vector<double> floats(ir::ValueId v);
  // The same for an input: its only element.
  int64_t int_value(ir::ValueId v);
  double float_value(ir::ValueId v);
  bool is_known(ir::ValueId v);

  bool has_attr(std::string_view name) const { return node_.attrs.contains(name); }
  int64_t attr_int(std::string_view name, int64_t fallback);
  int64_t attr_int(std::string_view name);  // refused when absent
  double attr_float(std::string_view name, double fallback);
  std::string attr_string(std::string_view name, std::string_view fallback);
  std::vector<int64_t> attr_ints(std::string_view name, const std::vector<int64_t>& fallback = {});
  std::vector<double> attr_floats(std::string_view name, const std::vector<double>& fallback = {});
  const std::vector<std::string>* attr_strings(std::string_view name);
  const DynValue* attr_tensor(std::string_view name);
  const OpenGraph* attr_graph(std::string_view name);

  ir::ValueId op(std::string_view name, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {});
  // Output `k` of a node with several, of which `first` is output 0.
  static ir::ValueId result(ir::ValueId first, size_t k) {
    return first + static_cast<ir::ValueId>(k);
  }
  ir::ValueId constant(const DynValue& tensor);
  ir::ValueId constant(ir::TensorType type, std::shared_ptr<const ir::ConstData> data);
  ir::ValueId scalar(DType dtype, double value);
  ir::ValueId scalar_like(ir::ValueId other, double value) { return scalar(dtype(other), value); }
  ir::ValueId int_vector(const std::vector<int64_t>& values);  // i64, rank 1
  ir::ValueId splat(ir::TensorType type, double value);
  ir::ValueId cast(ir::ValueId v, DType to);
  ir::ValueId reshape(ir::ValueId v, ir::Shape shape);
  ir::ValueId transpose(ir::ValueId v, std::vector<int64_t> perm);
  // Closes the region; refused state when it cannot be (then a host meaning takes over).
  std::vector<ir::ValueId> region(const OpenGraph& region, std::span<const ir::ValueId> inputs);

  // Leaves the node to its host meaning.
  Status use_host() {
    open_region_ = true;
    return status();
  }
  void set(size_t output, ir::ValueId v);
  // One output.
  Status give(ir::ValueId v) {
    set(0, v);
    return status();
  }
  void refuse(Code code, std::string message);
  Status refused(Code code, std::string message) {
    refuse(code, std::move(message));
    return status();
  }

  bool ok() const { return status_.ok() && missing_ == ir::kNoId && !open_region_; }
  Status status() const { return status_; }
  // The value whose content was asked for and is not known; kNoId: none.
  ir::ValueId missing() const { return missing_; }
  // Whether a region could not be closed.
  bool open_region() const { return open_region_; }
  ir::ValueId output(size_t i) const { return outputs_[i]; }
  ir::GraphBuilder& builder() { return builder_; }

 private:
  // Good until the builder grows.
  const ir::TensorType& look_at(ir::ValueId v) const;
  ir::ValueId take(Result<ir::ValueId> result);
  // What `v` holds; nothing, and the node waits, when that is not known.
  std::optional<DynValue> content(ir::ValueId v);
  template <class T>
  const T* find(std::string_view name);

  ir::GraphBuilder& builder_;
  const OpenNode& node_;
  std::vector<ir::ValueId> inputs_;
  std::vector<ir::ValueId> outputs_;
  Folder& folder_;
  Status status_;
  ir::ValueId missing_ = ir::kNoId;
  bool open_region_ = false;
};

}  // namespace pyc::open
