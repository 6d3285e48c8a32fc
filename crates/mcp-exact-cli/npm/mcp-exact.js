#!/usr/bin/env node
// Starts the program of the package for this platform, an optional dependency of this one, with the same arguments, streams and
// environment. Where Node.js can (22.15 or later, not on Windows), the program takes the place of this process. Elsewhere it is a
// child: signals are passed on, and its exit code or signal is that of this process.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants: files } = require("node:fs");
const { constants: system } = require("node:os");
const { name: own, homepage, optionalDependencies: packages } = require("./package.json");

/** Exit code for a program that cannot be started: that of the program for wrong usage and servers that cannot be reached. */
const CANNOT_START = 2;
const isWindows = process.platform === "win32";

function fail(...lines) {
  console.error([`error: ${lines[0]}`, ...lines.slice(1).map((line) => `  ${line}`)].join("\n"));
  process.exit(CANNOT_START);
}

/** Returns the path of the program. */
function findProgram() {
  const platform = `${process.platform}-${process.arch}`;
  const wanted = `@mcp-exact/cli-${platform}`;
  const alternatives = [
    "Alternatives: `uvx mcp-exact`, `cargo binstall mcp-exact-cli`, `cargo install mcp-exact-cli --features full`, or an archive of",
    `${homepage}/releases`,
  ];
  if (packages[wanted] === undefined) {
    const known = Object.keys(packages).map((name) => name.replace("@mcp-exact/cli-", ""));
    fail(`${own} has no program for ${platform}`, `There are programs for ${known.join(", ")}.`, ...alternatives);
  }
  const file = `${wanted}/bin/mcp-exact${isWindows ? ".exe" : ""}`;
  let program;
  try {
    program = require.resolve(file);
  } catch {
    fail(
      `the package ${wanted} is not installed`,
      `${file} was looked for in ${module.paths.join(", ")}.`,
      "The likely cause is an installation without optional dependencies (`--omit=optional`, `--no-optional`), with a lock file or a",
      "`node_modules` of another platform, or before all packages of this version were published. Remove both and install again.",
      ...alternatives,
    );
  }
  try {
    accessSync(program, files.X_OK);
  } catch (error) {
    fail(`${program} cannot be executed: ${error.message}`, ...alternatives);
  }
  return program;
}

/** Runs the program as a child, and ends as it ends. */
function run(program, parameters) {
  let child;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // On Windows, Ctrl-C and a closed console reach the child without help, and `kill` would end it at once.
    process.on(signal, () => isWindows || child.kill(signal));
  }
  child = spawn(program, parameters, { stdio: "inherit" });
  child.on("error", (error) => fail(`${program} cannot be started: ${error.message}`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // This process ends by the same signal, or if it ignores that one, by the exit code of shells.
    process.exitCode = 128 + system.signals[signal];
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const program = findProgram();
const parameters = process.argv.slice(2);
if (typeof process.execve === "function" && !isWindows) {
  process.execve(program, [program, ...parameters], process.env);
} else {
  run(program, parameters);
}
