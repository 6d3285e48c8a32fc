//! Calls with a connection of their own, during which the server may send requests to the client: the call is answered with a
//! result of type `input_required`, and continues by a retry.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{IncomingRequest, InputRequest, Outcome, PeerError, RawResult, Reply};
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connections::Lease;
use super::input::{input_request_key, may_require_input};
use super::receivers::CallReceiver;
use super::waiting::{RunningCall, WaitingCall};
use super::{Stateless, options_of};
use crate::around::gate::Admitted;
use crate::route::relay::{self, ProgressReceiver};
use crate::route::translate::Translation;
use crate::route::undeclared::UndeclaredCapabilities;
use crate::servers::errors::RelayError;

/// Maximum number of server requests that are combined into one result of type `input_required`.
const MAX_COMBINED_REQUESTS: usize = 16;

/// Time to wait for a further server request before the result of type `input_required` is sent.
const COMBINING_TIME: Duration = Duration::from_millis(5);

impl Stateless {
    /// Sends a call on a connection that no other call uses until the call has ended.
    pub(super) async fn call_on_leased_connection(
        &self,
        client: &ServerHandle,
        admitted: &Admitted,
        mut lease: Lease,
    ) -> Result<Reply, RelayError> {
        let request = admitted.request();
        let connection = lease.connection()?;
        let sent = self.call(request, &connection);
        let (sender, mut server_requests) = mpsc::unbounded_channel();
        if !may_require_input(request) {
            // The receiver of the connection refuses the requests that the channel does not accept.
            server_requests.close();
        }
        let undeclared = Arc::<UndeclaredCapabilities>::default();
        connection.set_receiver(Some(Arc::new(CallReceiver {
            client: client.clone(),
            key: request.key,
            server_requests: sender,
            undeclared: Arc::clone(&undeclared),
            back: sent.translation.reversed(),
            messages: sent.messages.clone(),
            uris: admitted.uris().clone(),
        })));
        let progress = ProgressReceiver::new(client, request.key);
        // A server with sessions does not use `requestState`; it sends requests to the client instead.
        let options = options_of(request, &connection);
        let pending = sent.send(request.params(), false, &progress, options, |_| {})?;
        let translation = sent.translation;
        lease.is_busy = true;
        let call = RunningCall {
            lease,
            connection,
            pending,
            server_requests,
            asked: 0,
            undeclared,
            progress,
            translation,
            waiting_permits: None,
        };
        Ok(self.wait(client, request, call).await?)
    }

    /// Waits for the server's answer to a call, or for a request of the server during the call.
    async fn wait(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        mut call: RunningCall,
    ) -> Result<Reply, PeerError> {
        let incoming = &mut call.server_requests;
        let first = tokio::select! {
            biased;
            outcome = &mut call.pending => {
                self.backend.record(&call.connection, &outcome);
                call.lease.is_busy = !matches!(outcome, Outcome::Result(_) | Outcome::Error(_));
                if let Some(error) = call.undeclared.error_of(request, &outcome) {
                    return Err(error);
                }
                if outcome == Outcome::Lost {
                    // The next call uses another connection.
                    call.connection.set_lost();
                }
                let mut sent = self.call(request, &call.connection);
                sent.translation = call.translation;
                return sent.reply(outcome);
            }
            Some(server_request) = incoming.recv() => server_request,
        };
        let mut server_requests = vec![first];
        // Requests that the server sends together are combined into one result.
        while server_requests.len() < MAX_COMBINED_REQUESTS
            && let Ok(Some(server_request)) = timeout(COMBINING_TIME, incoming.recv()).await
        {
            server_requests.push(server_request);
        }
        for server_request in &mut server_requests {
            server_request.number.get_or_insert_with(|| {
                call.asked += 1;
                call.asked
            });
        }
        let (back, messages) = (call.translation.reversed(), self.messages(request));
        let input_requests = server_requests.iter().map(|server_request| {
            let params = server_request.request.params().cloned();
            let ask = InputRequest::new(server_request.request.method(), params);
            let ask = back
                .input_request(&ask)
                .and_then(|ask| messages.input_request(ask));
            let ask = ask.inspect_err(|error| server_request.refuse(error.message()))?;
            Ok((input_request_key(server_request), ask))
        });
        let requests = input_requests.collect::<Result<_, PeerError>>()?;
        let state = self.waiting.store(client, request, call, server_requests)?;
        Ok(Reply::InputRequired {
            requests,
            state: Some(state),
        })
    }

    /// Continues a call with the answers of its client. Requests without an answer are sent to the client again.
    pub(super) async fn resume(
        &self,
        client: &ServerHandle,
        admitted: &Admitted,
        waiting: WaitingCall,
    ) -> Result<Reply, PeerError> {
        let request = admitted.request();
        let translation = Translation {
            from: request.revision(),
            to: waiting.call.translation.to,
            losses: waiting
                .call
                .translation
                .losses
                .of_retry(&request.context().app_data),
        };
        let messages = self.messages(request);
        let answers = waiting.server_requests.iter().map(|server_request| {
            let method = server_request.request.method();
            match request.responses.get(&input_request_key(server_request)) {
                None => Ok(None),
                Some(Outcome::Result(answer)) => {
                    let answer = messages.answer(method, answer.object())?;
                    let answer = translation.answer(method, &answer)?;
                    Ok(Some(Ok(RawResult::from(answer))))
                }
                // A client with a session can respond with an error.
                Some(Outcome::Error(error)) => Ok(Some(Err(error.clone()))),
                Some(_) => Ok(Some(Err(relay::missing_client_answer_error()))),
            }
        });
        let answers = match answers.collect::<Result<Vec<_>, PeerError>>() {
            Ok(answers) => answers,
            // The client can retry with another answer.
            Err(error) => {
                self.waiting.store_again(waiting);
                return Err(error);
            }
        };
        let WaitingCall {
            mut call,
            server_requests,
            expiry,
            ..
        } = waiting;
        drop(expiry);
        // From now on, messages of the server are relayed to this request instead of the previous one.
        let (sender, more) = mpsc::unbounded_channel();
        call.connection.set_receiver(Some(Arc::new(CallReceiver {
            client: client.clone(),
            key: request.key,
            server_requests: sender.clone(),
            undeclared: Arc::clone(&call.undeclared),
            back: translation.reversed(),
            messages: messages.clone(),
            uris: admitted.uris().clone(),
        })));
        call.progress.replace(client, request.key);
        for (server_request, answer) in server_requests.into_iter().zip(answers) {
            match answer {
                Some(answer) => server_request.answer(answer),
                None => drop(sender.send(server_request)),
            }
        }
        while let Ok(server_request) = call.server_requests.try_recv() {
            let _ = sender.send(server_request);
        }
        call.server_requests = more;
        call.translation = translation;
        self.wait(client, request, call).await
    }
}
