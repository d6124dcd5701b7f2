// npm run bench -- console [--json] [--quick]: the longest task of the console's main thread in each view, while it loads, scrolls,
// searches and is typed in, and the rows in the page, with 10 000 policies and 100 000 subjects on a real server. The server and the
// browser are those of tests/console, so the program is there.
import { spawn } from "node:child_process";
import path from "node:path";

const program = path.join(import.meta.dirname, "..", "tests", "console", "measure-views.ts");
const child = spawn(process.execPath, ["-C", "source", program, ...process.argv.slice(2)], { stdio: "inherit" });
child.once("exit", (code) => process.exit(code ?? 1));
