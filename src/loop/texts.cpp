#include "loop/texts.h"

#include <algorithm>

#include "base/hash.h"
#include "loop/function.h"

namespace pyc::loop {
namespace {

bool same_pools(const Pool& a, const Pool& b) {
  if (a.size() != b.size() || a.var_count() != b.var_count()) return false;
  for (ExprId id = 0; id < a.size(); ++id) {
    const ExprNode& x = a.node(id);
    const ExprNode& y = b.node(id);
    if (x.op != y.op || x.dtype != y.dtype || x.a != y.a || x.b != y.b || x.c != y.c ||
        x.imm != y.imm || x.word != y.word) {
      return false;
    }
  }
  for (VarId v = 0; v < a.var_count(); ++v) {
    const Var& x = a.var_info(v);
    const Var& y = b.var_info(v);
    if (x.dtype != y.dtype || x.extent != y.extent) return false;
  }
  return std::ranges::equal(a.tables(), b.tables(),
                            [](const Table& x, const Table& y) {
                              return x.dtype == y.dtype && x.words == y.words;
                            }) &&
         std::ranges::equal(a.functions(), b.functions(),
                            [](const auto& x, const auto& y) { return same_function(*x, *y); });
}

bool same_buffer(const Buffer& x, const Buffer& y) {
  return x.dtype == y.dtype && x.elements == y.elements && x.access == y.access &&
         x.in_place_of == y.in_place_of;
}

bool same_stmt(const Stmt& x, const Stmt& y) { return x.kind == y.kind && x.index == y.index; }

bool same_store(const Store& x, const Store& y) {
  return x.buffer == y.buffer && x.offset == y.offset && x.value == y.value;
}

bool same_check(const Check& x, const Check& y) { return x.ok == y.ok && x.code == y.code; }

bool same_reduction(const Reduction& x, const Reduction& y) {
  return x.kind == y.kind && x.op == y.op && x.value == y.value && x.value2 == y.value2 &&
         x.guard == y.guard && x.segment == y.segment && x.result == y.result;
}

bool same_carry(const Carry& x, const Carry& y) {
  return x.var == y.var && x.init == y.init && x.next == y.next && x.result == y.result;
}

bool same_loop(const Loop& x, const Loop& y) {
  return x.var == y.var && x.extent == y.extent && x.chunk_var == y.chunk_var &&
         x.chunk == y.chunk && x.vector == y.vector && x.ordered == y.ordered &&
         std::ranges::equal(x.body, y.body, same_stmt) &&
         std::ranges::equal(x.reductions, y.reductions, same_reduction) &&
         std::ranges::equal(x.carries, y.carries, same_carry);
}

// Equal for kernels with the same nodes.
uint64_t nodes_hash(const Kernel& kernel) {
  uint64_t hash = mix(kernel.pool.size(), kernel.loops.size());
  for (const Buffer& b : kernel.buffers) hash = mix(hash, static_cast<uint64_t>(b.elements));
  for (VarId v = 0; v < kernel.pool.var_count(); ++v) {
    hash = mix(hash, static_cast<uint64_t>(kernel.pool.var_info(v).extent));
  }
  return hash;
}

}  // namespace

bool same_nodes(const Kernel& a, const Kernel& b) {
  return std::ranges::equal(a.buffers, b.buffers, same_buffer) && a.parallel == b.parallel &&
         std::ranges::equal(a.body, b.body, same_stmt) &&
         std::ranges::equal(a.stores, b.stores, same_store) &&
         std::ranges::equal(a.loops, b.loops, same_loop) &&
         std::ranges::equal(a.checks, b.checks, same_check) && same_pools(a.pool, b.pool);
}

const KernelTexts::Known* KernelTexts::find(const Table& known, uint64_t hash,
                                            const Kernel& kernel) {
  const auto [begin, end] = known.equal_range(hash);
  const auto it = std::find_if(
      begin, end, [&](const auto& entry) { return same_nodes(*entry.second.kernel, kernel); });
  return it == end ? nullptr : &it->second;
}

const std::string& KernelTexts::of(const Kernel& kernel) {
  const uint64_t hash = nodes_hash(kernel);
  if (const Known* const known = find(known_, hash, kernel)) return known->text->text;
  const Known* const met = before_ == nullptr ? nullptr : find(before_->known_, hash, kernel);
  if (met != nullptr) return known_.emplace(hash, *met)->second.text->text;
  ++printed_;
  auto text = std::make_shared<const Text>(Text{.kernel = {}, .text = print(kernel)});
  return known_.emplace(hash, Known{&kernel, std::move(text)})->second.text->text;
}

std::shared_ptr<const KernelTexts> KernelTexts::kept() const {
  auto out = std::make_shared<KernelTexts>();
  for (const auto& [hash, known] : known_) {
    std::shared_ptr<const Text> text = known.text;
    if (known.kernel != &text->kernel) {
      text = std::make_shared<const Text>(Text{.kernel = *known.kernel, .text = text->text});
    }
    const Kernel* const own = &text->kernel;
    out->known_.emplace(hash, Known{own, std::move(text)});
  }
  return out;
}

}  // namespace pyc::loop
