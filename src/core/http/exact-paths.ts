import type { Result, Router } from 'hono/router';

/** The routes of one path, by method; `ALL` stands for each method that has none of its own. */
type MethodRoutes<T> = Map<string, Result<T>>;

/**
 * A router of hono that finds a route only by its exact path, or by everything before `/*` at its end. No character of
 * a path is a pattern, and nothing is decoded (docs/decisions/0078). A path and method have one handler, the first.
 */
export class ExactPaths<T> implements Router<T> {
  readonly name = 'ExactPaths';
  readonly #exact = new Map<string, MethodRoutes<T>>();
  /** By the part before the asterisk. */
  readonly #prefixes = new Map<string, MethodRoutes<T>>();
  readonly #nothing: Result<T> = [[]];

  add(method: string, path: string, handler: T): void {
    const isPrefix = path.endsWith('/*');
    const routes = isPrefix ? this.#prefixes : this.#exact;
    const key = isPrefix ? path.slice(0, -1) : path;
    const methods: MethodRoutes<T> = routes.get(key) ?? new Map();
    routes.set(key, methods);
    if (!methods.has(method)) methods.set(method, [[[handler, {}]]]);
  }

  match(method: string, path: string): Result<T> {
    const methods = this.#find(path);
    return methods?.get(method) ?? methods?.get('ALL') ?? this.#nothing;
  }

  /** True if a path has a handler of any method. */
  has(path: string): boolean {
    return this.#find(path) !== undefined;
  }

  /** The methods of a path. */
  methodsOf(path: string): readonly string[] {
    return [...(this.#find(path)?.keys() ?? [])];
  }

  #find(path: string): MethodRoutes<T> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return exact;
    for (const [prefix, methods] of this.#prefixes) if (path.startsWith(prefix)) return methods;
    return undefined;
  }
}
