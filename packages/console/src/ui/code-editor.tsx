import { lazy, type ReactNode, Suspense } from "react";
import type { CodeEditorProps } from "./code-mirror.tsx";
import { Skeleton } from "./skeleton.tsx";

export type { LineProblem } from "./code-mirror.tsx";

const CodeMirror = lazy(() => import("./code-mirror.tsx"));

/** YAML to edit or to read, with problems at their lines. CodeMirror is loaded only where it is shown. */
export function CodeEditor(props: CodeEditorProps): ReactNode {
  return (
    <Suspense fallback={<Skeleton className="h-64 w-full" />}>
      <CodeMirror {...props} />
    </Suspense>
  );
}
