// The questions of the page, to the server or to data in the page itself. Nothing else fetches.
import { type Columns, decode } from "./columns";
import {
  ENDPOINTS,
  type EndpointTypes,
  type Live,
  PREFIX,
  type Problem,
  type Progress,
} from "./protocol";

type Endpoint = keyof EndpointTypes;
type Answering<A extends string> = {
  [E in Endpoint]: (typeof ENDPOINTS)[E]["answers"] extends A
    ? (typeof ENDPOINTS)[E]["method"] extends "GET"
      ? E
      : never
    : never;
}[Endpoint];

/** Endpoints that answer with an object or with a table, and endpoints that change something. */
export type JsonEndpoint = Answering<"json">;
export type TableEndpoint = Answering<"table">;
export type PostEndpoint = {
  [E in Endpoint]: (typeof ENDPOINTS)[E]["method"] extends "POST" ? E : never;
}[Endpoint];
export type Asked<E extends Endpoint> = EndpointTypes[E]["parameters"];
export type Answer<E extends Endpoint> = EndpointTypes[E]["answer"];

/**
 * The source of answers. A signal can give up a question, which then rejects with an AbortError.
 * NotYet says to ask again later, and RequestFailed says what went wrong.
 */
export interface Source {
  /** Whether there is a server, which can cut, export and follow. The one-file page has no server. */
  readonly served: boolean;
  json<E extends JsonEndpoint>(
    endpoint: E,
    parameters: Asked<E>,
    signal?: AbortSignal,
  ): Promise<Answer<E>>;
  table<E extends TableEndpoint>(
    endpoint: E,
    parameters: Asked<E>,
    signal?: AbortSignal,
  ): Promise<Columns<Answer<E>>>;
  post<E extends PostEndpoint>(endpoint: E, body: EndpointTypes[E]["body"]): Promise<Answer<E>>;
  /**
   * Calls back at once and whenever something changed, and when the server is gone or came back.
   * The returned function ends that.
   */
  live(changed: (live: Live) => void, gone?: (gone: boolean) => void): () => void;
}

/** An error answer; `message` is a line to show. */
export class RequestFailed extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The server is still computing the answer; `live` says when to ask again. */
export class NotYet extends Error {
  constructor(readonly progress: number) {
    super("not there yet");
  }
}

export class ServerSource implements Source {
  readonly served = true;

  async json<E extends JsonEndpoint>(endpoint: E, parameters: Asked<E>, signal?: AbortSignal) {
    return (await (await get(endpoint, parameters, signal)).json()) as Answer<E>;
  }

  async table<E extends TableEndpoint>(endpoint: E, parameters: Asked<E>, signal?: AbortSignal) {
    const answer = await get(endpoint, parameters, signal);
    return decode<Answer<E>>(new Uint8Array(await answer.arrayBuffer()));
  }

  async post<E extends PostEndpoint>(endpoint: E, body: EndpointTypes[E]["body"]) {
    const answer = await fetch(PREFIX + ENDPOINTS[endpoint].path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await (await checked(answer)).json()) as Answer<E>;
  }

  live(changed: (live: Live) => void, gone?: (gone: boolean) => void): () => void {
    const stream = new EventSource(PREFIX + ENDPOINTS.live.path);
    stream.addEventListener("open", () => gone?.(false));
    stream.addEventListener("error", () => gone?.(true));
    stream.addEventListener("message", (event) => changed(JSON.parse(String(event.data)) as Live));
    return () => stream.close();
  }
}

/**
 * Returns the address of a question below the prefix. Its parameters are sorted by name, so that
 * equal questions have equal addresses. Empty parameters are left out.
 */
export function address(endpoint: Endpoint, parameters: object): string {
  let path: string = ENDPOINTS[endpoint].path;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const text = Array.isArray(value) ? value.join(",") : String(value ?? "");
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(text));
    else if (text) query.set(name, text);
  }
  return query.size ? `${path}?${query}` : path;
}

/** Returns whether an error only means that nobody waits for the answer any more. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

async function get(endpoint: Endpoint, parameters: object, signal?: AbortSignal) {
  const options = signal ? { signal } : {};
  const answer = await checked(await fetch(PREFIX + address(endpoint, parameters), options));
  if (answer.status === 202) throw new NotYet(((await answer.json()) as Progress).progress);
  return answer;
}

async function checked(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  const text = await answer.text();
  const line = problem(text) ?? `${answer.status} ${answer.statusText}`;
  throw new RequestFailed(answer.status, line);
}

function problem(text: string): string | null {
  try {
    return (JSON.parse(text) as Problem).error;
  } catch {
    return null; // not our server: a proxy on the way answered
  }
}
