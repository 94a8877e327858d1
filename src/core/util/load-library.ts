import { createRequire } from 'node:module';

/** The libraries that are loaded when they are first used. */
interface LateLibraries {
  /** For servers at a URL. */
  readonly undici: typeof import('undici');
  /** For clients and servers on a WebSocket. */
  readonly ws: typeof import('ws');
  /** For the search of tools. */
  readonly minisearch: typeof import('minisearch').default;
  /** For files with JSON. */
  readonly 'jsonc-parser': typeof import('jsonc-parser');
}

const requireLibrary = createRequire(import.meta.url);

/**
 * Returns a library, and loads it at the first call. A start would take a multiple of its time if it loaded libraries
 * that no request needs yet (docs/decisions/0085). Larger parts of the gateway are loaded with `import()`, by `app`.
 */
export function loadLibrary<Name extends keyof LateLibraries>(name: Name): LateLibraries[Name] {
  return requireLibrary(name);
}
