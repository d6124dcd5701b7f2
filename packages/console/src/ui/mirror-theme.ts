import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** The console's tokens, which reach into the shadow root by inheritance. */
const view = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--ink)", fontSize: "12.5px", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--font-mono, ui-monospace, monospace)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--ink-faint)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--accent-soft)", color: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 26%, transparent) !important",
  },
  ".cm-problem-line": { backgroundColor: "var(--denied-soft)" },
  ".cm-warning-line": { backgroundColor: "var(--warning-soft)" },
  ".cm-problem-text": {
    color: "var(--denied)",
    fontFamily: "system-ui, sans-serif",
    padding: "0 8px 2px 8px",
    fontSize: "12px",
  },
  ".cm-warning-text": {
    color: "var(--warning)",
    fontFamily: "system-ui, sans-serif",
    padding: "0 8px 2px 8px",
    fontSize: "12px",
  },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-soft) !important" },
  ".cm-deletedLine, .cm-deletedChunk": { backgroundColor: "var(--denied-soft) !important" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--denied-soft) !important" },
  // Underlined: on a stronger background the fainter colours would be hard to read.
  ".cm-changedText": { background: "none !important", boxShadow: "inset 0 -2px var(--good)" },
  "&.cm-merge-a .cm-changedText": { background: "none !important", boxShadow: "inset 0 -2px var(--denied)" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"·"' },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--ink-faint)" },
});

const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.content], color: "var(--ink)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--degraded)" },
  { tag: tags.comment, color: "var(--ink-faint)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--ink-faint)" },
  { tag: tags.invalid, color: "var(--denied)" },
]);

export const mirrorTheme: Extension = [view, syntaxHighlighting(highlight)];
