export default function Page(): string {
  return "a page";
}
