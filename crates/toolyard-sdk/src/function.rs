//! The common part of all handlers: functions of up to two parameters, blocking or async.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::{AbortHandle, spawn_blocking};

use crate::context::Context;

/// A function or closure, with its parameters as a tuple.
///
/// Implemented for every function of up to two parameters that can be sent between threads; do not implement it
/// yourself. A closure is cloned for each call, so that captured values can be moved into the future that it returns:
/// capture values that are cheap to clone, such as an [`Arc`](std::sync::Arc).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler",
    label = "not a function of at most a `Context` and arguments",
    note = "a handler is a function or closure, `async` or not, with the parameters `()`, `(Args)`, `(Context)` \
            or `(Context, Args)`",
    note = "the captured values of a closure must be `Clone + Send + Sync + 'static`: put them into an `Arc`"
)]
pub trait HandlerFunction<Parameters>: Clone + Send + Sync + 'static {
    /// The return value; the future for an `async` function.
    type Output;

    /// Calls the function.
    fn call(self, parameters: Parameters) -> Self::Output;
}

impl<F, R> HandlerFunction<()> for F
where
    F: FnOnce() -> R + Clone + Send + Sync + 'static,
{
    type Output = R;

    fn call(self, (): ()) -> R {
        self()
    }
}

impl<F, A, R> HandlerFunction<(A,)> for F
where
    F: FnOnce(A) -> R + Clone + Send + Sync + 'static,
{
    type Output = R;

    fn call(self, (first,): (A,)) -> R {
        self(first)
    }
}

impl<F, A, B, R> HandlerFunction<(A, B)> for F
where
    F: FnOnce(A, B) -> R + Clone + Send + Sync + 'static,
{
    type Output = R;

    fn call(self, (first, second): (A, B)) -> R {
        self(first, second)
    }
}

/// The type of the first of two parameters of a handler: [`Context`].
#[diagnostic::on_unimplemented(
    message = "the first of two parameters of a handler must be a `Context`, not `{Self}`",
    label = "takes two parameters, but the first is not a `Context`",
    note = "a handler takes nothing, `Args`, `Context`, or `Context` and then `Args`",
    note = "several arguments are the fields of one struct"
)]
pub trait FirstParameter: Send + Sized + 'static {
    /// Returns the parameter for a call.
    #[must_use]
    fn of(context: &Context) -> Self;
}

impl FirstParameter for Context {
    fn of(context: &Context) -> Self {
        context.clone()
    }
}

/// Marker of handlers that are plain functions, which run on threads that may block.
#[derive(Debug)]
pub enum BlockingHandler {}

/// Marker of handlers that return a future.
#[derive(Debug)]
pub enum AsyncHandler {}

/// Runs blocking work on tokio's blocking threads. Work that has not started when this future is dropped never starts;
/// a panic is propagated to the caller.
pub(crate) async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let running = spawn_blocking(work);
    let _abort = AbortOnDrop(running.abort_handle());
    match running.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down, and this future with it.
            Err(_) => pending().await,
        },
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Declares the trait of the return types of one kind of handler, and implements it for values, which implement
/// `$value`, and for futures. Its doc comment and diagnostics precede its name.
macro_rules! handler_output {
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

        impl<R: $value> $name<$crate::function::BlockingHandler> for R {
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

        impl<F: Future> $name<$crate::function::AsyncHandler> for F {
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

pub(crate) use handler_output;
