//! Transport that reads what a server has written before it closed its standard input, such as a usage text.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::transport::{Received, Transport};

/// Time in which the rest is read, if the server does not end.
const READ_TIME: Duration = Duration::from_millis(200);

/// Transport to a process. If its standard input cannot be written any more, what it has written is read before the error is reported.
pub(super) struct Unread<T> {
    transport: T,
    /// Error of the standard input, and the end of the time for reading.
    broken: Option<(io::Error, Pin<Box<Sleep>>)>,
    /// Messages that cannot be sent any more.
    unsent: Vec<u8>,
}

impl<T: Transport> Unread<T> {
    pub(super) fn new(transport: T) -> Self {
        Self {
            transport,
            broken: None,
            unsent: Vec::new(),
        }
    }

    /// Returns the error of the standard input, after the last output was read.
    fn take_error(&mut self) -> io::Result<()> {
        self.broken.take().map_or(Ok(()), |(error, _)| Err(error))
    }
}

impl<T: Transport> Transport for Unread<T> {
    fn name(&self) -> &'static str {
        self.transport.name()
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn FnMut(Received<'_>) -> bool,
    ) -> Poll<io::Result<bool>> {
        let received = self.transport.poll_receive(cx, sink);
        if matches!(received, Poll::Ready(Ok(false) | Err(_))) {
            self.take_error()?;
        }
        received
    }

    fn output(&mut self) -> &mut Vec<u8> {
        match self.broken {
            Some(_) => &mut self.unsent,
            None => self.transport.output(),
        }
    }

    fn end_frame(&mut self) {
        match self.broken {
            Some(_) => self.unsent.clear(),
            None => self.transport.end_frame(),
        }
    }

    fn queued(&self) -> usize {
        match self.broken {
            Some(_) => 0,
            None => self.transport.queued(),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_none() {
            match self.transport.poll_flush(cx) {
                Poll::Ready(Err(error)) => {
                    self.broken = Some((error, Box::pin(sleep(READ_TIME))));
                }
                polled => return polled,
            }
        }
        if let Some((_, time)) = &mut self.broken
            && time.as_mut().poll(cx).is_ready()
        {
            self.take_error()?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.take_error()?;
        self.transport.poll_close(cx)
    }
}
