// Counted references and recycled memory for the objects of the autograd model.
//
// The model decides questions by use counts ("is anyone else holding this gradient?"), so counts are
// part of its semantics, and it makes tens of thousands of objects per walk, so they come from free
// lists. One Autograd owns them all; nothing here is shared between threads.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace plimsoll::network {

// Holds one use of a T. T provides free functions retain(T*) and drop(T*).
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) retain(object_);
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    if (T* old = std::exchange(object_, nullptr)) drop(old);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// Memory for objects of type T: grows in chunks, reuses what was given back, frees at the end.
template <class T>
class Pool {
 public:
  template <class... Args>
  T* make(Args&&... args) {
    Slot* slot = free_;
    if (slot != nullptr) {
      free_ = slot->next;
    } else {
      if (fresh_ == end_) grow();
      slot = fresh_++;
    }
    ++alive_;
    return new (slot->bytes) T(std::forward<Args>(args)...);
  }
  void recycle(T* object) {
    object->~T();
    --alive_;
    Slot* slot = new (object) Slot;  // without braces: they would clear all of it
    slot->next = free_;
    free_ = slot;
  }
  std::size_t alive() const { return alive_; }

 private:
  union Slot {
    Slot* next;  // while free
    alignas(T) std::byte bytes[sizeof(T)];
  };
  static constexpr std::size_t kChunk = 128;

  void grow() {
    chunks_.push_back(std::make_unique_for_overwrite<Slot[]>(kChunk));
    fresh_ = chunks_.back().get();
    end_ = fresh_ + kChunk;
  }

  std::vector<std::unique_ptr<Slot[]>> chunks_;
  Slot* free_ = nullptr;   // given back, the last one first
  Slot* fresh_ = nullptr;  // never used, up to end_
  Slot* end_ = nullptr;
  std::size_t alive_ = 0;
};

}  // namespace plimsoll::network
