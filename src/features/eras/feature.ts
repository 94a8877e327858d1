import type { ErasFeature } from '../../app/features/eras.ts';
import { RequestStates } from '../../core/keys/request-state.ts';
import { anyChange, ChangeThrottle } from './modern/changes/change-throttle.ts';
import { probeEra } from './modern/era-probe.ts';
import { probeEraOverHttp } from './modern/http-era-probe.ts';
import { SharedSession } from './modern-on-legacy/session/shared-session.ts';
import { serveEras } from './serve-eras.ts';

export const eras: ErasFeature = {
  connect(options) {
    const states = new RequestStates(options.keys);
    const changes = new ChangeThrottle(options.store.changes, options.onFailed, anyChange);
    return {
      groupRules: (session, ways) =>
        new SharedSession(session, ways, (topic, text = anyChange) => changes.notify(topic, text)),
      serve: (server) => serveEras(options, states, server),
      close: () => changes.close(),
    };
  },
  detect: ({ openLegacy, ...options }) =>
    openLegacy === undefined ? probeEra(options) : probeEraOverHttp({ ...options, openLegacy }),
};
