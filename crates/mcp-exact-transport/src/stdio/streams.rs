//! Standard input and output as asynchronous streams of tokio.
//!
//! On Linux, a pipe is reopened through `/proc`, so that the flag `O_NONBLOCK` is not shared with other processes. A
//! Unix socket is used without threads, unless standard error is the same socket. All other files are read and written
//! in threads.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_exact_session::ServerSettings;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use super::claim::claim;
use crate::duplex::{ConnectionOptions, ServeError, serve};
use crate::endpoint::ServerHandler;
use crate::line::LineTransport;

/// Transport over standard input and output.
pub type StdioTransport = LineTransport<StdioInput, StdioOutput>;

/// Reserves standard input and output for the protocol.
///
/// After this call, other output of the process to standard output goes to standard error, and standard input is at its
/// end. This function must be called within a tokio runtime.
///
/// # Errors
///
/// An IO error if the streams were already reserved or are closed.
pub fn stdio(message_bytes: usize) -> io::Result<StdioTransport> {
    let claimed = claim()?;
    let input = StdioInput::new(claimed.input)?;
    let output = StdioOutput::new(claimed.output)?;
    Ok(LineTransport::new(input, output, message_bytes).with_name("stdio"))
}

/// Serves the client on the standard streams until the end of input, SIGTERM or Ctrl-C. Calls in flight are answered
/// first, within the time limit of the default [`ConnectionOptions`](crate::ConnectionOptions).
///
/// # Errors
/// Returns [`ServeError`] if reading or writing fails.
pub fn serve_stdio(
    settings: Arc<ServerSettings>,
    handler: Arc<dyn ServerHandler>,
) -> impl Future<Output = Result<(), ServeError>> + Send {
    let options = ConnectionOptions::default();
    // The body of an async function is compiled in every crate that calls it, and so is all that it instantiates. What a function
    // boxes is compiled here.
    let serving: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(serve_stdio_with(
        settings,
        handler,
        options,
        shutdown_signal(),
    ));
    serving
}

/// Serves the client on the standard streams until the end of input or until `shutdown` completes.
///
/// # Errors
///
/// Returns [`ServeError`] if reading or writing fails.
pub async fn serve_stdio_with(
    settings: Arc<ServerSettings>,
    handler: Arc<dyn ServerHandler>,
    options: ConnectionOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let transport = stdio(settings.limits.message_bytes)?;
    serve(settings, handler, transport, options, shutdown).await
}

/// Completes on Ctrl-C and, on Unix, on SIGTERM.
pub(crate) async fn shutdown_signal() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}

/// Standard input.
#[derive(Debug)]
pub struct StdioInput(Input);

/// Kind of standard input, which determines how it is read.
#[derive(Debug)]
enum Input {
    /// A pipe, which is read asynchronously.
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Receiver),
    /// A Unix socket, which is read asynchronously.
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    /// Any other file, which a thread reads with blocking calls.
    Thread(ThreadReader),
}

impl StdioInput {
    /// Selects the way to read a file.
    fn new(file: File) -> io::Result<Self> {
        #[cfg(unix)]
        let file = match unix::open_input(file) {
            Ok(input) => return Ok(Self(input)),
            Err(file) => file,
        };
        Ok(Self(Input::Thread(ThreadReader::start(file)?)))
    }
}

impl AsyncRead for StdioInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            #[cfg(unix)]
            Input::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buf),
            #[cfg(unix)]
            Input::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
            Input::Thread(reader) => reader.poll_read(cx, buf),
        }
    }
}

/// Standard output.
#[derive(Debug)]
pub struct StdioOutput(Output);

/// Kind of standard output, which determines how it is written.
#[derive(Debug)]
enum Output {
    /// A pipe, which is written asynchronously.
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Sender),
    /// A Unix socket, which is written asynchronously.
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    /// Any other file, which a thread pool writes with blocking calls.
    Thread(tokio::fs::File),
}

impl StdioOutput {
    /// Selects the way to write a file.
    #[allow(clippy::unnecessary_wraps, reason = "the counterpart of the input")]
    fn new(file: File) -> io::Result<Self> {
        #[cfg(unix)]
        let file = match unix::open_output(file) {
            Ok(output) => return Ok(Self(output)),
            Err(file) => file,
        };
        Ok(Self(Output::Thread(tokio::fs::File::from_std(file))))
    }
}

impl AsyncWrite for StdioOutput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            #[cfg(unix)]
            Output::Pipe(pipe) => Pin::new(pipe).poll_write(cx, buf),
            #[cfg(unix)]
            Output::Socket(socket) => Pin::new(socket).poll_write(cx, buf),
            Output::Thread(file) => Pin::new(file).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            #[cfg(unix)]
            Output::Pipe(_) | Output::Socket(_) => Poll::Ready(Ok(())),
            Output::Thread(file) => Pin::new(file).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Reader of a file in a thread. The thread ends at the end of input, or after its next read once the reader was
/// dropped.
#[derive(Debug)]
struct ThreadReader {
    /// Channel of the chunks that the thread has read.
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Current chunk, whose bytes are being returned.
    chunk: Vec<u8>,
    /// Number of bytes of the current chunk that were returned.
    taken: usize,
}

impl ThreadReader {
    /// Starts the thread.
    fn start(mut file: File) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(4);
        let read = move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let chunk = match file.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => Ok(buffer[..count].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_over = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || is_over {
                    return;
                }
            }
        };
        let builder = std::thread::Builder::new().name("mcp-stdin".to_owned());
        builder.spawn(read)?;
        Ok(Self {
            chunks,
            chunk: Vec::new(),
            taken: 0,
        })
    }

    /// Copies bytes of the current or the next chunk to `buf`; copies no bytes at the end of input.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.taken == self.chunk.len() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.chunk = chunk?,
                None => return Poll::Ready(Ok(())),
            }
            self.taken = 0;
        }
        let rest = &self.chunk[self.taken..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        self.taken += count;
        Poll::Ready(Ok(()))
    }
}

/// Asynchronous access to pipes and Unix sockets.
#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream as StdUnixStream;

    use rustix::fs::{FileType, OFlags, fstat};
    use rustix::net::{AddressFamily, sockopt::socket_domain};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    /// Opens a pipe or a socket for asynchronous reads; returns the file as the error if it is of another kind or the
    /// system does not support it.
    pub(super) fn open_input(file: File) -> Result<super::Input, File> {
        match kind(&file) {
            Some(FileType::Fifo) => {
                let opened = reopen(&file, OFlags::RDONLY);
                let opened = opened.and_then(|opened| pipe::Receiver::from_file(opened).ok());
                opened.map(super::Input::Pipe).ok_or(file)
            }
            Some(FileType::Socket) => socket(file).map(super::Input::Socket),
            _ => Err(file),
        }
    }

    /// Opens a pipe or a socket for asynchronous writes; returns the file as the error if it is of another kind or the
    /// system does not support it.
    pub(super) fn open_output(file: File) -> Result<super::Output, File> {
        match kind(&file) {
            Some(FileType::Fifo) => {
                let opened = reopen(&file, OFlags::WRONLY);
                let opened = opened.and_then(|opened| pipe::Sender::from_file(opened).ok());
                opened.map(super::Output::Pipe).ok_or(file)
            }
            Some(FileType::Socket) => socket(file).map(super::Output::Socket),
            _ => Err(file),
        }
    }

    /// Returns the type of a file; `None` if the system does not report the type.
    fn kind(file: &File) -> Option<FileType> {
        let stat = fstat(file).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    /// Opens a socket for asynchronous use, which affects all duplicates of its descriptor.
    ///
    /// A socket that is also standard error is refused, because code that writes to standard error expects blocking
    /// writes.
    fn socket(file: File) -> Result<UnixStream, File> {
        let is_unix = socket_domain(&file).is_ok_and(|domain| domain == AddressFamily::UNIX);
        let same = |other: &rustix::fs::Stat, own: &rustix::fs::Stat| {
            (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino)
        };
        let is_shared = match (fstat(rustix::stdio::stderr()), fstat(&file)) {
            (Ok(errors), Ok(own)) => same(&errors, &own),
            (Err(_), Ok(_)) => false,
            (_, Err(_)) => true,
        };
        let Some(copy) = file.try_clone().ok().filter(|_| is_unix && !is_shared) else {
            return Err(file);
        };
        let stream = StdUnixStream::from(OwnedFd::from(copy));
        let opened = stream.set_nonblocking(true);
        let opened = opened.and_then(|()| UnixStream::from_std(stream));
        opened.map_err(|_| file)
    }

    /// Reopens a pipe, so that its flags are not shared with other descriptors.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn reopen(file: &File, mode: OFlags) -> Option<File> {
        use std::os::fd::AsRawFd;

        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = mode | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened: OwnedFd = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
        Some(opened.into())
    }

    /// Returns `None`, because the system cannot reopen pipes.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn reopen(_: &File, _: OFlags) -> Option<File> {
        let none: Option<OwnedFd> = None;
        none.map(File::from)
    }
}
