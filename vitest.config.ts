import { defineConfig } from "vitest/config";

// Workspace packages run from source, as they do under `node -C source`; the rest are Vite's own for servers.
const conditions = ["source", "module", "node", "development|production"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["source", "node", "module-sync"] } },
  test: {
    include: ["packages/*/src/**/*.test.ts", "tests/**/*.test.ts", "bench/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    allowOnly: false,
    globals: false,
    maxWorkers: 2,
    pool: "forks",
    testTimeout: 20_000,
  },
});
