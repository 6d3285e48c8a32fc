//! The trait that `#[server]` implements, and functions that run blocking methods.

use crate::error::{BuildError, Error};
use crate::reply::IntoReply;
use crate::server::{Server, ServerBuilder};

/// Trait of types that are servers; the attribute `#[server]` on an impl block implements this trait.
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use mcp_exact::{Cx, IntoServer as _, server};
///
/// struct Greeter {
///     greeting: String,
/// }
///
/// #[server(name = "greeter", version = "1.0.0")]
/// impl Greeter {
///     /// Greets somebody.
///     #[tool(read_only)]
///     async fn greet(&self, name: String, cx: &Cx) -> String {
///         format!("{}, {name}! You speak {}.", self.greeting, cx.revision())
///     }
/// }
///
/// let server = Greeter { greeting: "Hello".into() }.into_server()?;
/// # }
/// # Ok::<(), mcp_exact::BuildError>(())
/// ```
///
/// The attribute expands to calls of the builder:
///
/// ```
/// # struct Greeter;
/// use mcp_exact::{Cx, Input, Server, Tool, schemars, serde};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     name: String,
/// }
///
/// let builder = Server::builder("greeter", "1.0.0").tool(
///     Tool::new("greet").description("Greets somebody.").read_only(true),
///     |Input(greet): Input<Greet>, cx: Cx| async move { format!("Hello, {}! You speak {}.", greet.name, cx.revision()) },
/// );
/// ```
pub trait IntoServer: Sized + Send + Sync + 'static {
    /// Creates a builder with the tools, resources and prompts of the type; further settings can be added.
    fn into_builder(self) -> ServerBuilder;

    /// Builds the server.
    ///
    /// # Errors
    /// [`BuildError`].
    fn into_server(self) -> Result<Server, BuildError> {
        self.into_builder().build()
    }

    /// Builds the server and serves the client on standard input and output ([`Server::serve_stdio`]).
    ///
    /// # Errors
    /// [`BuildError`] or the error of the transport.
    #[cfg(feature = "stdio")]
    fn serve_stdio(self) -> impl Future<Output = crate::Result> + Send {
        async move { self.into_server()?.serve_stdio().await }
    }

    /// Builds the server, and serves clients over HTTP on an address such as `127.0.0.1:8080` ([`Server::serve_http`]).
    ///
    /// # Errors
    /// [`BuildError`] or the error of the transport.
    #[cfg(feature = "http-server")]
    fn serve_http<A: tokio::net::ToSocketAddrs + Send>(
        self,
        address: A,
    ) -> impl Future<Output = crate::Result> + Send {
        async move { self.into_server()?.serve_http(address).await }
    }
}

/// Checks that `T` can be the result of a handler. The expansion of `#[server]` calls this function, so that the
/// compiler reports the error at the type.
#[doc(hidden)]
pub const fn check_reply<T: IntoReply<O>, O>() {}

/// Type of an argument of a `#[tool]` or `#[prompt]` method: every type that can be deserialised and has a JSON Schema.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of an argument",
    label = "has no JSON Schema, or is not decoded",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it; an extractor of your own is marked `#[extract]`"
)]
pub trait Argument {}

#[diagnostic::do_not_recommend]
impl<T: serde::de::DeserializeOwned + schemars::JsonSchema> Argument for T {}

/// Checks that `T` can be an argument. The expansion of `#[server]` calls this function, so that the compiler reports
/// the error at the type, with a hint how to fix it.
#[doc(hidden)]
pub const fn check_argument<T: Argument>() {}

/// Runs blocking work on tokio's blocking thread pool and returns its result.
///
/// The work continues after its request is cancelled; [`Cx::is_cancelled`](crate::Cx::is_cancelled) then returns true.
///
/// # Errors
/// [`Error`] if the work panics.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| match error.try_into_panic() {
            Ok(panic) => Error::msg(format!(
                "the handler panicked: {}",
                crate::panics::panic_message(panic)
            )),
            Err(error) => Error::from(error),
        })
}

/// Runs work whose future is not `Send`, such as a future that contains an `Rc`, on a thread for such futures, and
/// returns its result.
///
/// The work is dropped when its request is cancelled.
///
/// # Errors
/// [`Error`] if the work panics, or if the thread cannot be started.
#[cfg(feature = "local")]
pub async fn local<T, F, Fut>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
{
    let (mut done, output) = tokio::sync::oneshot::channel();
    let job: LocalJob = Box::new(move || {
        tokio::task::spawn_local(async move {
            let mut work = std::pin::pin!(work());
            tokio::select! {
                output = &mut work => {
                    // The caller may have dropped the request.
                    let _ = done.send(output);
                }
                () = done.closed() => {}
            }
        });
    });
    let jobs = local_job_sender()
        .as_ref()
        .map_err(|error| Error::msg(error.clone()))?;
    jobs.send(job)
        .map_err(|_| Error::msg("the thread of local handlers has ended"))?;
    output
        .await
        .map_err(|_| Error::msg("the handler panicked; see the log of the server"))
}

/// Function that starts work on the thread for futures that are not `Send`.
#[cfg(feature = "local")]
type LocalJob = Box<dyn FnOnce() + Send>;

/// Returns the channel to the thread that runs local handlers; the first call starts this thread.
#[cfg(feature = "local")]
fn local_job_sender() -> &'static Result<tokio::sync::mpsc::UnboundedSender<LocalJob>, String> {
    /// Sender of jobs, or the reason why the thread could not be started.
    type JobSender = Result<tokio::sync::mpsc::UnboundedSender<LocalJob>, String>;
    /// Channel to the thread, created by the first call.
    static JOB_SENDER: std::sync::OnceLock<JobSender> = std::sync::OnceLock::new();
    JOB_SENDER.get_or_init(|| {
        let (sender, mut jobs) = tokio::sync::mpsc::unbounded_channel::<LocalJob>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let work = move || {
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                while let Some(job) = jobs.recv().await {
                    job();
                }
            });
        };
        let thread = std::thread::Builder::new().name("mcp-exact-local".to_owned());
        thread.spawn(work).map_err(|error| error.to_string())?;
        Ok(sender)
    })
}

/// Changes a definition by the option `with` of an attribute.
#[doc(hidden)]
pub fn change_definition<T>(definition: T, change: impl FnOnce(T) -> T) -> T {
    change(definition)
}
