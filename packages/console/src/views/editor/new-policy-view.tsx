import type { ReactNode } from "react";
import { newPolicyText } from "../../policy/policy-form.ts";
import { PolicyEditor } from "./policy-editor.tsx";

export default function NewPolicyView(): ReactNode {
  return <PolicyEditor initial={newPolicyText} />;
}
