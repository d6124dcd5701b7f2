import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  WidgetType,
} from "@codemirror/view";
import { type ReactNode, useEffect, useRef } from "react";
import { classNames } from "./class-names.ts";
import { mirrorTheme } from "./mirror-theme.ts";

export interface LineProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
  readonly kind: "problem" | "warning";
}

export interface CodeEditorProps {
  /** Names the editor for screen readers. */
  readonly label: string;
  readonly value: string;
  /** Absent: it can only be read. */
  readonly onChange?: (value: string) => void;
  readonly problems?: readonly LineProblem[];
  readonly className?: string;
}

/**
 * CodeMirror in a shadow root. There its styles are adopted sheets, which a strict content security policy permits; in the page
 * they would be inline styles, which it does not.
 */
export default function CodeMirror({ label, value, onChange, problems, className }: CodeEditorProps): ReactNode {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const change = useRef(onChange);
  change.current = onChange;
  const editable = onChange !== undefined;

  // biome-ignore lint/correctness/useExhaustiveDependencies: later values are dispatched below.
  useEffect(() => {
    const root = openShadow(host.current!);
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: value, extensions: makeExtensions(label, editable, change) }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = undefined;
    };
  }, [label, editable]);

  useEffect(() => {
    const current = view.current;
    if (current === undefined || current.state.doc.toString() === value) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({ effects: setProblems.of(problems ?? []) });
  }, [problems]);

  return <div className={classNames("min-h-0 overflow-hidden rounded-md border border-line", className)} ref={host} />;
}

/** A second effect of React's strict mode finds the root of the first. */
export function openShadow(element: HTMLElement): ShadowRoot {
  return element.shadowRoot ?? element.attachShadow({ mode: "open" });
}

function makeExtensions(label: string, editable: boolean, change: { readonly current: CodeEditorProps["onChange"] }) {
  return [
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    indentUnit.of("  "),
    yaml(),
    mirrorTheme,
    problemLines,
    EditorState.readOnly.of(!editable),
    EditorView.editable.of(editable),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    ...(editable ? [highlightActiveLine(), highlightActiveLineGutter(), replaceLines] : []),
    // Escape and then Tab leaves the editor by keyboard, as CodeMirror documents it.
    keymap.of([...defaultKeymap, ...historyKeymap, ...(editable ? [indentWithTab] : [])]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) change.current?.(update.state.doc.toString());
    }),
  ];
}

/**
 * Typing over several lines, without the browser: it would join them with inline styles to keep their looks, which a strict content
 * security policy forbids and reports.
 */
const replaceLines = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    const { from, to } = state.selection.main;
    const text = event.inputType === "insertText" ? event.data : null;
    if (text === null || event.isComposing || state.doc.lineAt(from).number === state.doc.lineAt(to).number)
      return false;
    view.dispatch(state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

const setProblems = StateEffect.define<readonly LineProblem[]>();

const problemLines = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(decorations, transaction) {
    let current = decorations.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setProblems)) current = decorate(effect.value, transaction.state.doc);
    }
    return current;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorate(problems: readonly LineProblem[], doc: EditorState["doc"]): DecorationSet {
  const ranges = problems.flatMap(({ line, message, kind }) => {
    const at = doc.line(Math.min(Math.max(1, line), doc.lines));
    return [
      Decoration.line({ class: `cm-${kind}-line` }).range(at.from),
      Decoration.widget({ widget: new ProblemText(message, kind), block: true, side: 1 }).range(at.to),
    ];
  });
  return Decoration.set(ranges, true);
}

class ProblemText extends WidgetType {
  readonly message: string;
  readonly kind: string;

  constructor(message: string, kind: string) {
    super();
    this.message = message;
    this.kind = kind;
  }

  override eq(other: ProblemText): boolean {
    return other.message === this.message && other.kind === this.kind;
  }

  toDOM(): HTMLElement {
    const element = document.createElement("div");
    element.className = `cm-${this.kind}-text`;
    element.textContent = this.message;
    return element;
  }
}
