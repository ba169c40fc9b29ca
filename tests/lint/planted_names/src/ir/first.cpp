namespace pyc::ir {
namespace detail {
namespace {

constexpr int kLimit = 1;
struct Entry {
  int kOwn = 0;  // a member is no name of the namespace
};
int find(int key) { return key; }

}  // namespace
}  // namespace detail

int shared(int key) { return detail::find(key); }

}  // namespace pyc::ir
