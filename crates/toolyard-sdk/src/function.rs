//! What handlers of all kinds have in common: functions of up to two parameters, called at once or awaited.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::{AbortHandle, spawn_blocking};

use crate::context::Context;

/// A function or closure, by its parameters as a tuple.
///
/// You do not implement this: it is there for every function of up to two parameters that can be sent between
/// threads. A closure is cloned for each call, so that what it captures may be moved into the future that it
/// returns: capture what is cheap to clone, such as an [`Arc`](std::sync::Arc).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler",
    label = "not a function of at most a `Context` and arguments",
    note = "a handler is a function or closure, `async` or not, with the parameters `()`, `(Args)`, `(Context)` \
            or `(Context, Args)`",
    note = "what a closure captures has to be `Clone + Send + Sync + 'static`: put it into an `Arc`"
)]
pub trait Function<Parameters>: Clone + Send + Sync + 'static {
    /// What it returns; for an `async` function, the future.
    type Output;

    /// Calls it.
    fn call(self, parameters: Parameters) -> Self::Output;
}

impl<F, R> Function<()> for F
where
    F: FnOnce() -> R + Clone + Send + Sync + 'static,
{
    type Output = R;

    fn call(self, (): ()) -> R {
        self()
    }
}

impl<F, A, R> Function<(A,)> for F
where
    F: FnOnce(A) -> R + Clone + Send + Sync + 'static,
{
    type Output = R;

    fn call(self, (first,): (A,)) -> R {
        self(first)
    }
}

impl<F, A, B, R> Function<(A, B)> for F
where
    F: FnOnce(A, B) -> R + Clone + Send + Sync + 'static,
{
    type Output = R;

    fn call(self, (first, second): (A, B)) -> R {
        self(first, second)
    }
}

/// What the first of two parameters of a handler can be: a [`Context`].
#[diagnostic::on_unimplemented(
    message = "the first of two parameters of a handler has to be a `Context`, and is `{Self}`",
    label = "takes two parameters, of which the first is no `Context`",
    note = "a handler takes nothing, `Args`, `Context`, or `Context` and then `Args`",
    note = "several arguments are the fields of one struct"
)]
pub trait FirstParameter: Send + Sized + 'static {
    /// Takes it from what is around a call.
    #[must_use]
    fn of(context: &Context) -> Self;
}

impl FirstParameter for Context {
    fn of(context: &Context) -> Self {
        context.clone()
    }
}

/// Marks handlers that are plain functions: they run where they may block.
#[derive(Debug)]
pub enum Blocking {}

/// Marks handlers that return a future.
#[derive(Debug)]
pub enum Async {}

/// Runs what may block on the threads that tokio keeps for that. Work that has not begun when this is dropped
/// never does; a panic goes on here.
pub(crate) async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let running = spawn_blocking(work);
    let _withdrawn = Withdraw(running.abort_handle());
    match running.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and with it whoever waits for this.
            Err(_) => pending().await,
        },
    }
}

struct Withdraw(AbortHandle);

impl Drop for Withdraw {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Writes the trait of what handlers of one kind return, and implements it for values, which `$value` names, and for
/// futures. Its documentation and what the compiler says of it stand before its name.
macro_rules! returned {
    ($(#[$about:meta])* pub trait $name:ident of a $handler:ident: $value:ident) => {
        $(#[$about])*
        pub trait $name<Kind>: Sized {
            /// The value.
            type Value;

            #[doc = concat!("Runs the ", stringify!($handler), ".")]
            fn run(
                $handler: impl FnOnce() -> Self + Send + 'static,
            ) -> futures_util::future::BoxFuture<'static, Self::Value>
            where
                Self: Send + 'static;
        }

        impl<R: $value> $name<$crate::function::Blocking> for R {
            type Value = R;

            fn run(
                $handler: impl FnOnce() -> R + Send + 'static,
            ) -> futures_util::future::BoxFuture<'static, R>
            where
                R: Send + 'static,
            {
                Box::pin($crate::function::blocking($handler))
            }
        }

        impl<F: Future> $name<$crate::function::Async> for F {
            type Value = F::Output;

            fn run(
                $handler: impl FnOnce() -> F + Send + 'static,
            ) -> futures_util::future::BoxFuture<'static, F::Output>
            where
                F: Send + 'static,
            {
                Box::pin(async move { $handler().await })
            }
        }
    };
}

pub(crate) use returned;
