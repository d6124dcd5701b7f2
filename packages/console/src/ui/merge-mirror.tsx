import { yaml } from "@codemirror/lang-yaml";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { type ReactNode, useEffect, useRef } from "react";
import { openShadow } from "./code-mirror.tsx";
import { mirrorTheme } from "./mirror-theme.ts";

export interface DiffViewProps {
  readonly label: string;
  readonly before: string;
  readonly after: string;
  readonly beforeLabel: string;
  readonly afterLabel: string;
}

export default function MergeMirror({ label, before, after, beforeLabel, afterLabel }: DiffViewProps): ReactNode {
  const host = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const root = openShadow(host.current!);
    const side = (doc: string, name: string) => ({
      doc,
      extensions: [
        lineNumbers(),
        yaml(),
        mirrorTheme,
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": name, tabindex: "0" }),
      ],
    });
    const merge = new MergeView({
      a: side(before, beforeLabel),
      b: side(after, afterLabel),
      root,
      parent: root,
      collapseUnchanged: { margin: 3, minSize: 6 },
      gutter: true,
    });
    return () => merge.destroy();
  }, [before, after, beforeLabel, afterLabel]);

  return (
    <section aria-label={label} className="flex flex-col gap-1">
      <div className="grid grid-cols-2 text-xs font-medium text-ink-faint">
        <span>{beforeLabel}</span>
        <span>{afterLabel}</span>
      </div>
      <div className="max-h-[32rem] overflow-auto rounded-md border border-line" ref={host} />
    </section>
  );
}
