//! Test server over stdio. The first argument selects the mode of the server.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_tests_transport::echo;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let config = echo::server_settings();
    match mode.as_str() {
        "threads" => {
            mcp_exact_transport::serve_blocking(config, Arc::new(echo::handle_in_threads))?
        }
        "crash" => {
            eprintln!("first line");
            eprintln!("cannot open the database");
            std::process::exit(7);
        }
        // Leaves at anything that is not `initialize`, as some servers before 2026-07-28 do.
        "fragile" => {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            if !line.contains("\"initialize\"") {
                std::process::exit(1);
            }
            let id = "\"id\":";
            let at = line.find(id).ok_or("no id")? + id.len();
            let number: String = line[at..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            println!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"result\":{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{{}},\"serverInfo\":{{\"name\":\"old\",\"version\":\"1\"}}}}}}"
            );
            while std::io::stdin().read_line(&mut line)? > 0 {}
        }
        // Answers with a line of a gigabyte.
        "endless" => {
            use std::io::Write;

            std::io::stdin().read_line(&mut String::new())?;
            let mut output = std::io::stdout();
            output.write_all(b"{\"x\":\"")?;
            let chunk = vec![b'x'; 1 << 20];
            for _ in 0..1024 {
                output.write_all(&chunk)?;
            }
        }
        // Ignores the end of its input and SIGTERM, and has a child of its own.
        "stubborn" => {
            let script = "trap '' TERM; sleep 1000 & echo $! > \"$0\"; while :; do sleep 0.1; done";
            let file = std::env::args()
                .nth(2)
                .ok_or("no file for the process id")?;
            let mut child = std::process::Command::new("sh")
                .args(["-c", script, &file])
                .spawn()?;
            child.wait()?;
        }
        _ => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let serve = mcp_exact_transport::serve_stdio(config, Arc::new(echo::handle));
                tokio::spawn(async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    println!("this goes to standard error");
                });
                serve.await
            })?;
        }
    }
    Ok(())
}
