// Tests of `mcp-exact.js` with scripts in the place of the program: `node --test crates/mcp-exact-cli/npm/test.mjs`. Each runs
// as the version of Node.js can, and once more as older versions do.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const source = dirname(fileURLToPath(import.meta.url));
const platform = `${process.platform}-${process.arch}`;
const folder = mkdtempSync(join(tmpdir(), "mcp-exact-npm-"));
after(() => rmSync(folder, { recursive: true }));

/** Installs the package beside a program, or without one; returns the path of the script that `npx` starts. */
function install(name, program, mode = 0o755, dependencies = [platform]) {
  const modules = join(folder, name, "node_modules");
  const own = join(modules, "mcp-exact");
  mkdirSync(own, { recursive: true });
  copyFileSync(join(source, "mcp-exact.js"), join(own, "mcp-exact.js"));
  const optionalDependencies = Object.fromEntries(dependencies.map((one) => [`@mcp-exact/cli-${one}`, "1.2.3"]));
  writeFileSync(join(own, "package.json"), JSON.stringify({ name: "mcp-exact", homepage: "https://example.com", optionalDependencies }));
  if (program !== undefined) {
    const bin = join(modules, "@mcp-exact", `cli-${platform}`, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, "mcp-exact"), program, { mode });
  }
  mkdirSync(join(modules, ".bin"));
  symlinkSync("../mcp-exact/mcp-exact.js", join(modules, ".bin", "mcp-exact"));
  return join(modules, ".bin", "mcp-exact");
}

const older = join(folder, "older.cjs");
writeFileSync(older, "delete process.execve;");
const ways = { "as this Node.js can": [], "as a child": ["--require", older] };

for (const [way, options] of Object.entries(ways)) {
  const run = (script, words = [], input = "") =>
    spawnSync(process.execPath, [...options, script, ...words], { input, encoding: "utf8" });
  const name = (text) => `${text} ${way.replaceAll(" ", "-")}`;

  describe(way, { skip: process.platform === "win32" }, () => {
    test("arguments, streams and exit code are the program's", () => {
      const script = install(name("streams"), '#!/bin/sh\nprintf "<%s>" "$@"\ncat\necho to-stderr >&2\nexit 7\n');
      const { status, stdout, stderr } = run(script, ["a b", "", "--c=*"], "input");
      assert.deepEqual([status, stdout, stderr], [7, "<a b><><--c=*>input", "to-stderr\n"]);
    });

    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      test(`${signal} reaches the program, whose exit code counts`, { timeout: 60_000 }, async () => {
        const waiting = `process.on("${signal}", () => process.exit(9));\nprocess.stdin.on("end", () => process.exit(1)).resume();\n`;
        const script = install(name(signal), `#!${process.execPath}\n${waiting}console.log("ready");\n`);
        const child = spawn(process.execPath, [...options, script], { stdio: ["pipe", "pipe", "inherit"] });
        child.stdout.once("data", () => child.kill(signal));
        assert.deepEqual(await new Promise((resolve) => child.on("exit", (...how) => resolve(how))), [9, null]);
      });
    }

    test("a program that ends by a signal ends this one by it", () => {
      for (const signal of ["SIGTERM", "SIGKILL"]) {
        const script = install(name(`killed-${signal}`), `#!/bin/sh\nkill -${signal.slice(3)} $$\n`);
        const { status, signal: ended } = run(script);
        assert.deepEqual([status, ended], [null, signal]);
      }
    });

    test("a missing package is explained", () => {
      const { status, stderr } = run(install(name("missing")));
      assert.equal(status, 2);
      assert.match(stderr, new RegExp(`^error: the package @mcp-exact/cli-${platform} is not installed\n`));
      assert.match(stderr, new RegExp(`cli-${platform}/bin/mcp-exact was looked for in .*node_modules`));
      assert.match(stderr, /--omit=optional/);
      assert.match(stderr, /uvx mcp-exact.*\n.*https:\/\/example.com\/releases/);
    });

    test("an unsupported platform is named", () => {
      const { status, stderr } = run(install(name("platform"), undefined, 0, ["plan9-mips", "beos-x64"]));
      assert.equal(status, 2);
      assert.match(stderr, new RegExp(`^error: mcp-exact has no program for ${platform}\n.* plan9-mips, beos-x64.\n`));
    });

    test("a program that cannot be executed is named", { skip: process.getuid?.() === undefined }, () => {
      const { status, stderr } = run(install(name("mode"), "#!/bin/sh\n", 0o644));
      assert.equal(status, 2);
      assert.match(stderr, /^error: .*bin\/mcp-exact cannot be executed: EACCES/);
    });
  });
}
