import { resolveRelative } from "./module-syntax.ts";
import type { SourceTree } from "./source-tree.ts";

/** Relative links in Markdown files that lead to no file, folder or heading, one line each. */
export function findBrokenLinks(tree: SourceTree): readonly string[] {
  const places = new Set<string>();
  for (const file of tree.keys()) {
    const steps = file.split("/");
    for (let depth = 0; depth <= steps.length; depth += 1) places.add(steps.slice(0, depth).join("/"));
  }
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.endsWith(".md")) continue;
    for (const link of findLinks(text)) {
      if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(link)) continue;
      const [target = "", anchor] = link.split("#");
      const place = target === "" ? file : resolveRelative(file, decodeURI(target)).replace(/\/$/, "");
      if (target.startsWith("/") || !places.has(place)) problems.push(`${file}: ${link} leads nowhere`);
      else if (anchor !== undefined && place.endsWith(".md") && !findAnchors(tree.get(place) ?? "").has(anchor)) {
        problems.push(`${file}: ${link} names a missing heading`);
      }
    }
  }
  return problems;
}

function findLinks(text: string): readonly string[] {
  const prose = withoutFences(text).replaceAll(/`[^`\n]+`/g, "");
  const patterns = [
    /\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g,
    /^\s*\[[^\]]+\]:\s+<?([^\s>]+)>?/gm,
    /\b(?:href|src)="([^"]+)"/g,
  ];
  return patterns.flatMap((pattern) => [...prose.matchAll(pattern)].map((match) => match[1] ?? ""));
}

/** The anchors that GitHub generates for headings. */
function findAnchors(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, title = ""] of withoutFences(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
    let anchor = slug;
    for (let copy = 1; anchors.has(anchor); copy += 1) anchor = `${slug}-${copy}`;
    anchors.add(anchor);
  }
  return anchors;
}

function withoutFences(text: string): string {
  return text.replaceAll(/^(\s*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\s*\2[^\n]*$/gm, "");
}
