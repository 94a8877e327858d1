import { loadLibrary as loadRealLibrary } from '../../../src/core/util/load-library.ts';
import { withFakeWebSocket } from '../fake-sockets.ts';

/** In place of `loadLibrary`, for `run.mjs`. */
export const loadLibrary = withFakeWebSocket(loadRealLibrary);
