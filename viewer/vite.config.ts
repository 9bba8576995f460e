// Three files with fixed names, which crates/memviz-view/src/assets.rs embeds; no inline script or style, which the
// server's Content-Security-Policy forbids.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    rolldownOptions: { output: { entryFileNames: "app.js", assetFileNames: "app[extname]", codeSplitting: false } },
  },
});
