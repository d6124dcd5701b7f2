import { type ReactNode, useState } from "react";
import { IconButton } from "./button.tsx";

export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return <IconButton icon={copied ? "check" : "copy"} label={copied ? "Copied" : label} onClick={() => void copy()} />;
}
