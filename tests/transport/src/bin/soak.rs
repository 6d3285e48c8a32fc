//! Generates random traffic with faults: `soak SECONDS [SEED]`. Fails if a result is wrong, a call does not end, or a
//! resource is leaked.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::time::{Duration, Instant, SystemTime};

use mcp_exact_tests_transport::process::raise_open_files;
use mcp_exact_tests_transport::soak;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    raise_open_files();
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().ok_or("soak SECONDS [SEED]")?.parse()?;
    let seed = match arguments.next() {
        Some(seed) => seed.parse()?,
        None => SystemTime::UNIX_EPOCH.elapsed()?.as_secs(),
    };
    println!("soak {seconds} {seed}");
    // A panic anywhere is a failure, also in tasks that are not awaited.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::exit(101);
    }));
    let program = std::env::current_exe()?.with_file_name("echo_server");
    let program = program.to_str().ok_or("a path that is not text")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let start = Instant::now();
    let counts = runtime.block_on(soak::run(Duration::from_secs(seconds), seed, program));
    print!("{counts}");
    println!(
        "nothing is left after {} seconds",
        start.elapsed().as_secs()
    );
    Ok(())
}
