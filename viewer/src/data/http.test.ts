import { expect, test } from "vitest";
import { AnswerError, isAborted } from "./errors";
import { encodeScene, makeScene, VIEW } from "./fixtures";
import { httpSource } from "./http";

function answering(response: Response | Error): { source: ReturnType<typeof httpSource>; asked: string[] } {
  const asked: string[] = [];
  const source = httpSource("/api/", async (url) => {
    asked.push(url);
    if (response instanceof Error) throw response;
    return response;
  });
  return { source, asked };
}

test("parameters stand in the order of the format", async () => {
  const { source, asked } = answering(new Response(encodeScene(makeScene())));
  await source.timeline({ ...VIEW, areas: true });
  expect(asked).toEqual(["/api/timeline?r=0&axis=event&from=0&to=8&columns=8&low=0&high=100&rows=100&by=line&areas=1"]);
});

test("each question is asked as the format has it", async () => {
  const { source, asked } = answering(new Response("{}"));
  const all = [
    source.place(1, { axis: "time", at: 2.5 }),
    source.place(1, { event: 3 }),
    source.place(1, { name: "next-step", event: 3 }),
    source.find(0, "a&b=c", "line"),
    source.report("diff", [0, 1], ["--by", "line"]),
    source.moment(0, 5, "dtype", 9),
    source.whatif(VIEW, { policy: "", device: "", cache_limit: 0, memory_limit: null }),
  ];
  await Promise.allSettled(all);
  expect(asked.map((url) => url.slice("/api/".length))).toEqual([
    "place?r=1&axis=time&at=2.5",
    "place?r=1&event=3",
    "place?r=1&name=next-step&event=3",
    "find?r=0&text=a%26b%3Dc&by=line",
    "report?command=diff&r=0&r=1&option=--by&option=line",
    "moment?r=0&event=5&by=dtype&other=9",
    "whatif?r=0&axis=event&from=0&to=8&columns=8&policy=&device=&cache_limit=0&memory_limit=",
  ]);
});

test("the server's sentence and status come through", async () => {
  const { source } = answering(new Response('{"error":"no block 9, expected 0 to 8"}', { status: 404 }));
  await expect(source.block(0, 9)).rejects.toMatchObject({ status: 404, sentence: "no block 9, expected 0 to 8", reading: false });
});

test("503 is told apart, and a body that is no JSON too", async () => {
  await expect(answering(new Response('{"error":"reading"}', { status: 503 })).source.at(0, 1, 2)).rejects.toMatchObject({ reading: true });
  await expect(answering(new Response("<html>", { status: 502 })).source.at(0, 1, 2)).rejects.toMatchObject({ status: 502 });
  await expect(answering(new Response("<html>")).source.recordings()).rejects.toThrow(/not JSON/);
  await expect(answering(new Response("MVVX1234")).source.flame(0, 1)).rejects.toBeInstanceOf(AnswerError);
});

test("a server that is gone is told of, a request given up is not", async () => {
  await expect(answering(new TypeError("failed to fetch")).source.recordings()).rejects.toThrow(/start `memviz view` again/);
  const gone = answering(new DOMException("stop", "AbortError")).source.recordings();
  await expect(gone.catch((error: unknown) => isAborted(error))).resolves.toBe(true);
});
