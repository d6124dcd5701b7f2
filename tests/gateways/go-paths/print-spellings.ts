// Prints the list that main.go reads. To record what Go makes of a list that has changed:
// npx node -C source tests/gateways/go-paths/print-spellings.ts | go run tests/gateways/go-paths/main.go > tests/gateways/go-paths/generated/readings.json
import { listSpellings } from "../path-spellings.ts";

process.stdout.write(JSON.stringify(listSpellings()));
