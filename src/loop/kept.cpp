#include "loop/kept.h"

#include <utility>

#include "loop/builder.h"
#include "loop/loop.h"

namespace pyc::loop {
namespace {

class KeptStores {
 public:
  KeptStores(Kernel& kernel, const InPlacePair& pair, bool one_nan)
      : kernel_(kernel), pair_(pair), one_nan_(one_nan) {}

  int drop() {
    const std::vector<Stmt> body = std::move(kernel_.body);
    kernel_.body = without_kept(body);
    kernel_.stores = std::move(stores_);
    kernel_.loops = std::move(loops_);
    return dropped_;
  }

 private:
  std::vector<Stmt> without_kept(const std::vector<Stmt>& body) {
    std::vector<Stmt> left;
    for (const Stmt& s : body) {
      if (s.kind == StmtKind::kStore) {
        if (puts_back(kernel_.stores[s.index])) {
          ++dropped_;
          continue;
        }
        left.push_back({s.kind, static_cast<uint32_t>(stores_.size())});
        stores_.push_back(kernel_.stores[s.index]);
      } else if (s.kind == StmtKind::kLoop) {
        Loop l = kernel_.loops[s.index];
        l.body = without_kept(l.body);
        if (l.body.empty() && l.reductions.empty() && l.carries.empty()) continue;
        left.push_back({s.kind, static_cast<uint32_t>(loops_.size())});
        loops_.push_back(std::move(l));
      } else {
        left.push_back(s);
      }
    }
    return left;
  }

  bool puts_back(const Store& store) {
    if (store.buffer != pair_.written) return false;
    Pool& pool = kernel_.pool;
    const ExprId loaded = pool.load(pair_.read, kernel_.buffers[pair_.read].dtype, store.offset);
    if (store.value == loaded) return true;
    return one_nan_ && store.value == canonical_nan({&pool, loaded}).id;
  }

  Kernel& kernel_;
  const InPlacePair& pair_;
  bool one_nan_;
  int dropped_ = 0;
  std::vector<Store> stores_;
  std::vector<Loop> loops_;
};

}  // namespace

int drop_kept_stores(Kernel& kernel, const InPlacePair& pair, bool one_nan) {
  return KeptStores(kernel, pair, one_nan).drop();
}

}  // namespace pyc::loop
