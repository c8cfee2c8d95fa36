//! The memory of a tensor's elements, which clones share.

#[cfg(feature = "std")]
use crate::memory::held::{Held, Mark};
#[cfg(feature = "std")]
use crate::memory::listener;
#[cfg(feature = "std")]
use crate::memory::pool;
#[cfg(feature = "std")]
use crate::memory::registry;
use alloc::sync::Arc;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::any::{Any, TypeId};
#[cfg(feature = "std")]
use core::mem::replace;
use core::mem::{ManuallyDrop, forget};
use core::ops::{Deref, DerefMut};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::{self, NonNull, null_mut};
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Elements in memory that the last buffer frees or, with the feature `std`, may return to a pool.
///
/// Clones share the memory: the first clone allocates a few words, later ones increment a counter.
/// Changing a buffer whose memory is shared copies the elements first.
pub struct Buffer<T> {
    memory: VecParts<T>,
    /// Null until the memory is first shared or marked; then a pointer from [`Arc::into_raw`] that
    /// holds a strong count.
    shared: AtomicPtr<SharedVec<T>>,
}

// SAFETY: buffers on several threads read the same elements, and the thread of the last one drops
// them, as for an `Arc` of a vector.
unsafe impl<T: Send + Sync> Send for Buffer<T> {}
// SAFETY: a shared borrow of a buffer allows reading and cloning, which may give another thread a
// buffer: see `Send`.
unsafe impl<T: Send + Sync> Sync for Buffer<T> {}

// A panic leaves no shared state half changed: elements change only through an exclusive borrow of
// the only buffer, as in a vector, and a mark changes only by storing a whole value in an atomic or
// a `OnceLock`.
impl<T: UnwindSafe + RefUnwindSafe> UnwindSafe for Buffer<T> {}
impl<T: RefUnwindSafe> RefUnwindSafe for Buffer<T> {}

/// The parts of a vector, which is rebuilt from them once.
struct VecParts<T> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
}

/// Frees memory that no buffer uses any more, or returns it to the pool.
#[cfg_attr(not(unoptimized), inline(always))]
fn recycle<T>(memory: Vec<T>) {
    #[cfg(feature = "std")]
    if listener::is_listening() {
        recycle_heard(memory);
    } else {
        pool::recycle(memory);
    }
    #[cfg(not(feature = "std"))]
    drop(memory);
}

/// [`recycle`] with a listener. It is a separate function, so that `recycle` need not keep the
/// vector in registers.
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn recycle_heard<T>(memory: Vec<T>) {
    listener::freed(memory.as_ptr(), memory.len());
    pool::recycle(memory);
}

impl<T> VecParts<T> {
    #[cfg(feature = "std")]
    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn copy(&self) -> Self {
        VecParts { start: self.start, len: self.len, capacity: self.capacity }
    }

    /// Rebuilds the vector.
    ///
    /// # Safety
    ///
    /// The vector is rebuilt once, and the elements are not read through the parts afterwards.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn into_vec(self) -> Vec<T> {
        // SAFETY: these are the parts of a vector that was forgotten; the caller promises that no
        // other vector is built from them.
        unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, self.capacity) }
    }
}

/// Memory that buffers share, or that is marked.
struct SharedVec<T> {
    memory: VecParts<T>,
    #[cfg(feature = "std")]
    mark: Option<Mark>,
}

impl<T> SharedVec<T> {
    fn new(memory: VecParts<T>) -> Self {
        SharedVec {
            memory,
            #[cfg(feature = "std")]
            mark: None,
        }
    }
}

impl<T> SharedVec<T> {
    #[cfg(feature = "std")]
    fn is_traced(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.is_live())
    }

    #[cfg(not(feature = "std"))]
    fn is_traced(&self) -> bool {
        false
    }
}

impl<T> Drop for SharedVec<T> {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        if self.mark.is_some() {
            registry::remove(self.memory.start.as_ptr().cast(), self.memory.bytes());
        }
        // SAFETY: an `Arc` drops its value once, when its last owner is gone.
        recycle(unsafe { self.memory.copy().into_vec() });
    }
}

// SAFETY: all owners read the memory, and the last one drops it, as for an `Arc` of a vector.
#[cfg(feature = "std")]
unsafe impl<T: Send + Sync> Send for SharedVec<T> {}
// SAFETY: a shared borrow gives only shared access to the memory, as for an `Arc` of a vector.
#[cfg(feature = "std")]
unsafe impl<T: Send + Sync> Sync for SharedVec<T> {}

#[cfg(feature = "std")]
impl<T: Send + Sync + 'static> Held for SharedVec<T> {
    fn start(&self) -> *const u8 {
        self.memory.start.as_ptr().cast()
    }

    fn start_mut(&mut self) -> Option<*mut u8> {
        Some(self.memory.start.as_ptr().cast())
    }

    fn len(&self) -> usize {
        self.memory.len
    }

    fn element(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    fn into_mark(self: Arc<Self>) -> Option<Mark> {
        // The registry has a weak reference, so the value cannot be borrowed exclusively. But the
        // last owner can take it.
        let mut last = Arc::into_inner(self)?;
        if last.mark.is_some() {
            registry::remove(last.start(), last.memory.bytes());
        }
        last.mark.take()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[cfg(feature = "std")]
impl<T: Send + Sync + 'static> Buffer<T> {
    /// Elements in marked memory.
    pub fn marked(data: Vec<T>, mark: Mark) -> Self {
        let buffer = Buffer::from(data);
        let last = Arc::new(SharedVec { memory: buffer.memory.copy(), mark: Some(mark) });
        // `last` owns the memory now.
        forget(buffer);
        registry::insert(&(Arc::clone(&last) as Arc<dyn Held>));
        Buffer { memory: last.memory.copy(), shared: AtomicPtr::new(Arc::into_raw(last).cast_mut()) }
    }

    /// Marks the memory. If it is shared, this buffer gets a copy, which is marked instead.
    pub fn set_mark(&mut self, mark: Mark)
    where
        T: Copy,
    {
        let data = replace(self, Buffer::from(Vec::new())).taken();
        *self = Buffer::marked(data, mark);
    }

    /// Removes the mark, if there is one. If the marked memory is shared, this buffer gets a copy
    /// without a mark.
    pub fn remove_mark(&mut self)
    where
        T: Copy,
    {
        if self.mark().is_some() {
            let data = replace(self, Buffer::from(Vec::new())).taken();
            *self = Buffer::from(data);
        }
    }

    /// The memory, shared with this buffer.
    pub fn held(&self) -> Arc<dyn Held> {
        let clone = ManuallyDrop::new(self.share());
        // SAFETY: a clone is shared, so its pointer is from `Arc::into_raw`. The clone is not
        // dropped, so its count goes to the `Arc`.
        unsafe { Arc::from_raw(clone.shared.load(Ordering::Acquire)) }
    }

    /// A buffer of this shared memory, if the element type is `T`.
    pub fn of_held(held: &Arc<dyn Held>) -> Option<Self> {
        let last = Arc::downcast::<SharedVec<T>>(Arc::clone(held).into_any()).ok()?;
        Some(Buffer { memory: last.memory.copy(), shared: AtomicPtr::new(Arc::into_raw(last).cast_mut()) })
    }
}

impl<T> Buffer<T> {
    /// The `Arc` that owns the memory, if there is one.
    ///
    /// It uses this buffer's count: drop either the `Arc` or the buffer, not both.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn shared(&mut self) -> Option<ManuallyDrop<Arc<SharedVec<T>>>> {
        let shared = *self.shared.get_mut();
        if shared.is_null() {
            return None;
        }
        // SAFETY: a pointer that is not null is from `Arc::into_raw`, and this buffer has a count
        // of it, which is not dropped here.
        Some(ManuallyDrop::new(unsafe { Arc::from_raw(shared) }))
    }

    /// Whether the elements can be changed in place, without a copy.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_unshared(&mut self) -> bool {
        // A change would make the mark of traced elements wrong.
        self.shared().is_none_or(|mut shared| Arc::get_mut(&mut shared).is_some_and(|last| !last.is_traced()))
    }

    /// The mark of the memory.
    #[cfg(feature = "std")]
    #[inline]
    pub fn mark(&self) -> Option<&Mark> {
        if !registry::is_active() {
            return None;
        }
        let shared = self.shared.load(Ordering::Acquire);
        // SAFETY: a pointer that is not null is from `Arc::into_raw`, and the buffer has a count of
        // it for as long as it is borrowed.
        unsafe { shared.as_ref() }?.mark.as_ref()
    }

    /// Whether the elements have the mark of a program that is still being recorded.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_traced(&self) -> bool {
        #[cfg(feature = "std")]
        if registry::is_active() {
            let shared = self.shared.load(Ordering::Acquire);
            // SAFETY: a pointer that is not null is from `Arc::into_raw`, and the buffer has a
            // count of it for as long as it is borrowed.
            return unsafe { shared.as_ref() }.is_some_and(SharedVec::is_traced);
        }
        false
    }

    fn is_recorded(&self) -> bool {
        #[cfg(feature = "std")]
        return self.mark().is_some_and(|mark| mark.is_recorded());
        #[cfg(not(feature = "std"))]
        false
    }

    /// The elements as a vector. They are copied if the memory is shared.
    #[inline]
    pub fn into_vec(self) -> Vec<T>
    where
        T: Clone,
    {
        #[cfg(feature = "std")]
        if listener::is_listening() {
            return self.into_vec_heard();
        }
        self.taken()
    }

    #[cfg(feature = "std")]
    #[cold]
    #[inline(never)]
    fn into_vec_heard(self) -> Vec<T>
    where
        T: Clone,
    {
        let data = self.taken();
        listener::freed(data.as_ptr(), data.len());
        data
    }

    /// [`into_vec`](Buffer::into_vec) without notifying the listener.
    #[inline]
    fn taken(self) -> Vec<T>
    where
        T: Clone,
    {
        let mut buffer = ManuallyDrop::new(self);
        let Some(shared) = buffer.shared() else {
            // SAFETY: the memory is not shared, and this buffer is not dropped.
            return unsafe { buffer.memory.copy().into_vec() };
        };
        match Arc::try_unwrap(ManuallyDrop::into_inner(shared)) {
            Ok(last) => {
                #[cfg_attr(not(feature = "std"), allow(unused_mut))]
                let mut last = ManuallyDrop::new(last);
                #[cfg(feature = "std")]
                if last.mark.is_some() {
                    registry::remove(last.memory.start.as_ptr().cast(), last.memory.bytes());
                    drop(last.mark.take());
                }
                // SAFETY: this was the last owner of the memory, and it is not dropped.
                unsafe { last.memory.copy().into_vec() }
            }
            // `shared` may have become the last owner, so it is dropped after the copy.
            Err(shared) => elements(&shared.memory).to_vec(),
        }
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn elements<T>(memory: &VecParts<T>) -> &[T] {
    // SAFETY: these are the initialized elements of a vector that was forgotten. It is not rebuilt
    // while an owner of `memory` is borrowed, and the elements are not changed meanwhile: that
    // takes an exclusive borrow of the only buffer.
    unsafe { &*ptr::slice_from_raw_parts(memory.start.as_ptr(), memory.len) }
}

impl<T> From<Vec<T>> for Buffer<T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn from(data: Vec<T>) -> Self {
        let mut data = ManuallyDrop::new(data);
        // SAFETY: the pointer of a vector is not null.
        let start = unsafe { NonNull::new_unchecked(data.as_mut_ptr()) };
        let memory = VecParts { start, len: data.len(), capacity: data.capacity() };
        Buffer { memory, shared: AtomicPtr::new(null_mut()) }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[cfg_attr(not(unoptimized), inline(always))]
    fn deref(&self) -> &[T] {
        elements(&self.memory)
    }
}

/// Panics if the elements are [traced](Buffer::is_traced). Otherwise copies them first if the
/// memory is shared or marked.
impl<T: Clone> DerefMut for Buffer<T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn deref_mut(&mut self) -> &mut [T] {
        if !self.is_unshared() {
            if self.shared().is_some_and(|shared| shared.is_traced()) {
                changed_while_traced(self.is_recorded());
            }
            *self = Buffer::from(self.to_vec());
        }
        // SAFETY: these are the elements of a vector that was forgotten. The memory is not shared,
        // and cannot become shared while `self` is borrowed.
        unsafe { slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.len) }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn changed_while_traced(is_recorded: bool) -> ! {
    if is_recorded {
        let at = core::panic::Location::caller();
        panic!(
            "a tensor cannot be changed in place while a function is recorded (at {at}); compute a new one: `let x = (x + y).eval();`"
        )
    }
    panic!(
        "a tensor that a gradient is taken through cannot be changed in place; compute a new tensor, or change a copy: `x.detach()`"
    )
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        self.share()
    }
}

impl<T> Buffer<T> {
    fn share(&self) -> Self {
        let mut shared = self.shared.load(Ordering::Acquire);
        if shared.is_null() {
            let made = Arc::into_raw(Arc::new(SharedVec::new(self.memory.copy()))).cast_mut();
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            shared = match self.shared.compare_exchange(null_mut(), made, success, failure) {
                Ok(_) => made,
                Err(first) => {
                    // Another thread shared the buffer first, and its `Arc` owns the memory.
                    // SAFETY: `made` is from `Arc::into_raw`, and no other thread has seen it.
                    forget(Arc::into_inner(unsafe { Arc::from_raw(made) }));
                    first
                }
            };
        }
        // SAFETY: the pointer is from `Arc::into_raw`, and `self` has a count of it for as long as
        // it is borrowed.
        unsafe { Arc::increment_strong_count(shared) };
        Buffer { memory: self.memory.copy(), shared: AtomicPtr::new(shared) }
    }
}

impl<T> Drop for Buffer<T> {
    #[inline]
    fn drop(&mut self) {
        match self.shared() {
            // SAFETY: the memory is not shared, and a buffer is dropped once.
            None => recycle(unsafe { self.memory.copy().into_vec() }),
            Some(shared) => drop(ManuallyDrop::into_inner(shared)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn clones_have_one_memory_until_one_is_changed() {
        let mut first = Buffer::from(vec![1, 2, 3]);
        let start = first.as_ptr();
        assert!(first.is_unshared());
        let mut second = first.clone();
        let third = second.clone();
        assert!([&first, &second, &third].iter().all(|buffer| buffer.as_ptr() == start));
        assert!(!first.is_unshared());
        second[0] = 7;
        assert_eq!((&first[..], &second[..], &third[..]), (&[1, 2, 3][..], &[7, 2, 3][..], &[1, 2, 3][..]));
        drop(third);
        first[1] = 8;
        assert_eq!(first.as_ptr(), start, "the last one is changed where it is");
        let data = first.into_vec();
        assert_eq!((data.as_ptr(), second.into_vec()), (start, vec![7, 2, 3]));
    }

    #[test]
    fn a_buffer_can_be_used_after_a_panic_as_a_vector_can() {
        fn check<T: UnwindSafe + RefUnwindSafe>() {}
        check::<Buffer<f32>>();
        let buffer = Buffer::from(vec![1, 2, 3]);
        let clone = buffer.clone();
        let panic = std::panic::catch_unwind(move || {
            let mut clone = clone;
            clone[0] = 7;
            clone[3]
        });
        assert!(panic.is_err());
        assert_eq!(buffer.into_vec(), [1, 2, 3]);
    }

    #[cfg(feature = "std")]
    impl crate::memory::held::Marker for &'static str {
        fn is_live(&self) -> bool {
            *self != "ended"
        }
    }

    #[test]
    fn memory_whose_mark_has_ended_can_be_changed() {
        let mut buffer = Buffer::from(vec![1, 2, 3]);
        buffer.set_mark(Box::new("ended"));
        let other = buffer.clone();
        assert!(!buffer.is_traced() && buffer.mark().is_some());
        buffer[0] = 7;
        assert_eq!((&buffer[..], &other[..]), (&[7, 2, 3][..], &[1, 2, 3][..]));
    }

    #[test]
    fn a_mark_is_set_and_removed_in_place_unless_the_memory_is_shared() {
        let mut buffer = Buffer::from(vec![1, 2, 3]);
        let start = buffer.as_ptr();
        buffer.set_mark(Box::new("first"));
        assert!(buffer.mark().is_some() && buffer.is_traced());
        assert!(registry::find(start.cast()).is_some());
        let mut clone = buffer.clone();
        assert!(clone.mark().is_some());
        clone.remove_mark();
        assert!(clone.mark().is_none() && clone.as_ptr() != start && buffer.mark().is_some());
        buffer.remove_mark();
        assert!(buffer.mark().is_none() && buffer.is_unshared() && registry::find(start.cast()).is_none());
        assert_eq!((buffer.as_ptr(), &buffer[..], &clone[..]), (start, &[1, 2, 3][..], &[1, 2, 3][..]));

        let mut clone = buffer.clone();
        clone.set_mark(Box::new("second"));
        assert!(clone.as_ptr() != start && buffer.mark().is_none() && clone.mark().is_some());
        assert!(registry::find(start.cast()).is_none());
    }

    #[test]
    fn the_first_clones_on_many_threads_share_one_memory() {
        for _ in 0..200 {
            let buffer = Buffer::from(vec![5u64; 100]);
            let clones: Vec<Buffer<u64>> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| buffer.clone())).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(clones.iter().all(|clone| clone.as_ptr() == buffer.as_ptr()));
            drop(buffer);
            std::thread::scope(|scope| {
                for mut clone in clones {
                    scope.spawn(move || {
                        clone[0] += 1;
                        assert_eq!(clone.into_vec().iter().sum::<u64>(), 501);
                    });
                }
            });
        }
    }

    proptest! {
        /// After any sequence of operations, each buffer has the elements of the vector at the same
        /// index.
        #[test]
        fn buffers_are_vectors(len in 0usize..5, steps in prop::collection::vec((0u8..4, 0usize..8, 0usize..8), 0..60)) {
            let mut buffers = vec![Buffer::from(vec![0; len])];
            let mut vectors = vec![vec![0; len]];
            for (at, (step, one, other)) in steps.into_iter().enumerate() {
                let one = one % buffers.len();
                match step {
                    0 => {
                        buffers.push(buffers[one].clone());
                        vectors.push(vectors[one].clone());
                    }
                    1 if len > 0 => {
                        buffers[one][other % len] = at;
                        vectors[one][other % len] = at;
                    }
                    2 if buffers.len() > 1 => {
                        drop(buffers.swap_remove(one));
                        vectors.swap_remove(one);
                    }
                    _ => {
                        let data = buffers.swap_remove(one).into_vec();
                        buffers.push(data.into());
                        let vector = vectors.swap_remove(one);
                        vectors.push(vector);
                    }
                }
                for (buffer, vector) in buffers.iter().zip(&vectors) {
                    prop_assert_eq!(&buffer[..], &vector[..]);
                }
            }
        }
    }
}
