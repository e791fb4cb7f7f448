//! Typed numbers, and vectors that only one type of them indexes: the number of a link cannot index
//! a vector of nodes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::{slice, vec};

/// A number that names an element of an [`IdVec`]. Declared with [`ids!`](crate::ids).
pub trait Id: Copy {
    /// The id of the element at `index`.
    fn new(index: usize) -> Self;

    /// The position of the element that this id names.
    fn index(self) -> usize;
}

/// Declares ids: 32-bit numbers, each a type of its own.
///
/// ```
/// use airtcp_core::{IdVec, ids};
///
/// ids! {
///     /// A bridge, by its place in the list.
///     pub struct BridgeId;
/// }
/// let mut bridges = IdVec::new();
/// let tower = bridges.push("Tower");
/// assert_eq!((tower, bridges[tower]), (BridgeId(0), "Tower"));
/// ```
#[macro_export]
macro_rules! ids {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub u32);

        impl $crate::Id for $name {
            #[inline]
            fn new(index: usize) -> Self {
                Self(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

/// A vector indexed by ids of one type.
#[derive(Clone, PartialEq, Eq)]
#[repr(transparent)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I, T> IdVec<I, T> {
    /// An empty vector.
    pub const fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    /// An empty vector with room for `capacity` elements.
    pub fn with_capacity(capacity: usize) -> Self {
        Vec::with_capacity(capacity).into()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The elements, in order of their ids.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// Iterates over the elements.
    #[inline]
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.items.iter()
    }

    /// Iterates over the elements mutably.
    #[inline]
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// Appends an element and returns its id.
    #[inline]
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }

    /// The element with this id; `None` past the end.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// The same, mutable.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())
    }

    /// All ids, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    /// Iterates over the elements, each with its id.
    pub fn enumerated(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.items)
    }
}

impl<I: Id, T: Clone> IdVec<I, T> {
    /// The element with this id. A shorter vector is first lengthened with copies of `filler`.
    pub fn reach(&mut self, id: I, filler: T) -> &mut T {
        let index = id.index();
        if index >= self.items.len() {
            self.items.resize(index + 1, filler);
        }
        &mut self.items[index]
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, id: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(items: S) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IdVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}
