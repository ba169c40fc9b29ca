namespace pyc::loop {
namespace {

constexpr int kLimit = 3;  // of another folder

}  // namespace
}  // namespace pyc::loop
