import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { gatewayOptions } from '../../src/config/options/options.ts';
import { root } from '../support/gateway.ts';

/** deploy/envoy.yaml follows the rules of docs/scaling.md. Envoy itself is in no package that the tests can install. */

const { static_resources } = parse(readFileSync(`${root}deploy/envoy.yaml`, 'utf8'));
const connections = static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
const [{ route }] = connections.route_config.virtual_hosts[0].routes;
const [cluster] = static_resources.clusters;
const secondsOf = (duration: string): number => Number(duration.replace(/s$/, ''));

it('limits no whole response, and silence only beyond the time of the longest silent request', () => {
  expect(route.timeout).toBe('0s');
  expect(secondsOf(connections.stream_idle_timeout) * 1000).toBeGreaterThan(
    gatewayOptions.timeouts.requestIdle.default,
  );
});

it('repeats only requests whose connection failed', () => {
  expect(route.retry_policy.retry_on).toBe('connect-failure');
});

it('closes idle connections before a gateway does', () => {
  const [options] = Object.values<{ common_http_protocol_options: { idle_timeout: string } }>(
    cluster.typed_extension_protocol_options,
  );
  const idleMs = secondsOf(options?.common_http_protocol_options.idle_timeout ?? '') * 1000;
  expect(idleMs).toBeLessThan(gatewayOptions.timeouts.connectionIdle.default);
});

it('asks for readiness, and brings the requests of a session to the gateway that opened it', () => {
  expect(cluster.health_checks[0].http_health_check.path).toBe('/readyz');
  const [affinity, router] = connections.http_filters;
  expect(affinity.typed_config.session_state.typed_config.header.name).toBe('mcp-session-id');
  expect(router.name).toBe('envoy.filters.http.router');
});
