import type { WorkerLink, WorkerTopic } from "../observe/worker-link.ts";

type Answer = (question: string) => Promise<string>;

/** Makes links of workers to each other, in one process. */
export function linkWorkers(): (number: number) => WorkerLink {
  const workers = new Map<number, Map<WorkerTopic, Answer>>();
  return (number) => {
    const own = new Map<WorkerTopic, Answer>();
    workers.set(number, own);
    return {
      number,
      async askOthers(topic, question = "") {
        const others = [...workers].filter(([other]) => other !== number);
        return Promise.all(others.map(async ([, answers]) => (await answers.get(topic)?.(question)) ?? ""));
      },
      answer: (topic, render) => own.set(topic, render),
    };
  };
}
