import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The admin port of a server that `vite dev` passes API calls on to. */
const server = "http://127.0.0.1:8090";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  plugins: [react(), tailwind()],
  resolve: { conditions: ["source", "module", "browser", "development|production"] },
  // The content security policy allows no inline script, no inline style and no data: URL.
  build: {
    target: "es2023",
    cssTarget: ["chrome123", "safari17.5", "firefox128"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": { target: server, changeOrigin: true } } },
});
