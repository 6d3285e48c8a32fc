//! Memory that the authentication of a request allocates: it must be equal for one key and for a key set of the maximum
//! size.
//!
//! This test is a separate executable, because it counts all allocations of a thread. The executable `verify_cost`
//! measures the duration.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mcp_exact::transport::http::server::Authenticate as _;
use mcp_exact_auth::server::{Jwks, ResourceServer};
use mcp_exact_tests_auth::issuer::valid_claims;
use mcp_exact_tests_auth::tokens::Signer;
use serde_json::json;

/// System allocator that counts the allocations and the allocated bytes.
struct CountingAllocator;

thread_local! {
    /// Numbers of allocations and of allocated bytes of this thread so far; the test harness has a thread of its own.
    static ALLOCATED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Allocator of this executable.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without unsafe code"
)]
// SAFETY: every function passes its arguments unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (calls, bytes) = ALLOCATED.get();
        ALLOCATED.set((calls + 1, bytes + layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Issuer of the tokens.
const ISSUER: &str = "https://as.example";
/// Resource for which the tokens are valid.
const RESOURCE: &str = "https://mcp.example/mcp";

/// Returns the number of allocations and of allocated bytes of one authentication. The key set has `keys` keys, and the
/// token is signed with the last of them.
fn count_allocations(keys: usize) -> (usize, usize) {
    let signers: Vec<Signer> = (10..10 + keys)
        .map(|n| Signer::new(&format!("k{n}")))
        .collect();
    let set: Vec<_> = signers
        .iter()
        .map(|signer| signer.key_set()["keys"][0].clone())
        .collect();
    let verifier = Jwks::new(ISSUER, RESOURCE).fixed_keys(&json!({ "keys": set }).to_string());
    let server = ResourceServer::new(ISSUER, RESOURCE, verifier.expect("keys"));
    let server = server.expect("a resource").scopes(["read"]);
    let signer = signers.last().expect("there is a key");
    let claims = valid_claims(ISSUER, RESOURCE, "u", "read");
    let bearer = format!("Bearer {}", signer.sign(&signer.header(), &claims));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(async {
        let mut counted = (0, 0);
        // The first verification may initialize caches.
        for _ in 0..2 {
            let request = http::Request::post(RESOURCE).header("authorization", &bearer);
            let (mut parts, ()) = request.body(()).expect("a request").into_parts();
            let before = ALLOCATED.get();
            let accepted = server.authenticate(&mut parts).await;
            let after = ALLOCATED.get();
            counted = (after.0 - before.0, after.1 - before.1);
            accepted.expect("the token is valid");
        }
        counted
    })
}

/// The authentication of a request allocates the same memory for 64 keys as for one key.
#[test]
fn allocations_are_independent_of_keys() {
    let (one, full) = (count_allocations(1), count_allocations(64));
    println!("one key: {one:?}, 64 keys: {full:?} (calls, bytes)");
    assert!(one.0 > 0, "nothing is counted");
    assert_eq!(one, full);
}
