/** Sums of metrics on a server's page, over the series whose labels match. */
export interface Scrape {
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

export async function scrape({ http }: { readonly http: string }): Promise<Scrape> {
  const response = await fetch(`${http}/metrics`, { headers: { connection: "close" } });
  if (!response.ok) throw new Error(`${http}/metrics answered with ${response.status}`);
  return readScrape(await response.text());
}

/** The same of several servers together. */
export async function scrapeAll(servers: readonly { readonly http: string }[]): Promise<Scrape> {
  const pages = await Promise.all(servers.map(scrape));
  return { sum: (name, labels) => pages.reduce((sum, page) => sum + page.sum(name, labels), 0) };
}

export function readScrape(page: string): Scrape {
  const series = page.split("\n").flatMap((line) => {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    return found === null ? [] : [{ name: found[1], labels: found[2] ?? "", value: Number(found[3]) }];
  });
  return {
    sum(name, labels = {}) {
      const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      return series
        .filter((one) => one.name === name && wanted.every((pair) => `,${one.labels},`.includes(`,${pair},`)))
        .reduce((sum, { value }) => sum + value, 0);
    },
  };
}
