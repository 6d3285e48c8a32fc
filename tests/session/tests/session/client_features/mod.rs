//! Features of clients: requests that servers send to clients (`client/*`).

mod elicitation;
mod server_requests;
