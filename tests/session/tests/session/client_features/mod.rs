//! Features of clients: what servers request of them (`client/*`).

mod elicitation;
mod server_requests;
