import { isIP } from 'node:net';

/**
 * Protection against DNS rebinding: a web page that makes a browser talk to a gateway on its user's machine
 * (2025-11-25, basic/transports, "Security Warning"). Host and Origin are both checked.
 */
export interface OriginRules {
  /** False if a request comes from a web page of an origin that is not allowed. No Origin header: not from a page. */
  allowsOrigin(origin: string | undefined): boolean;
  /** False if the client believes to talk to a host that is not allowed. */
  allowsHost(host: string | undefined): boolean;
}

/** What the operator configured. */
export interface OriginOptions {
  /** The address that the gateway is bound to. */
  readonly host: string;
  /** Origins beyond the default, such as `https://app.example.com`; `*` for all. */
  readonly allowOrigin: readonly string[];
  /** Host names, with or without port, beyond the default; `*` for all. */
  readonly allowHost: readonly string[];
}

/** `name`, `name:port`, `[v6]` or `[v6]:port`, and nothing else: no userinfo, no path, no blanks. */
const hostForm = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/;

/** True for what a Host header may be (RFC 9110, section 7.2); a proxy could take another part of anything else for the host. */
export const isHost = (value: string | undefined): boolean => hostForm.test(value?.toLowerCase() ?? '');

/**
 * The rules for a gateway. Bound to a loopback address, it allows loopback names as Host and as Origin; bound to another
 * one, it allows any Host unless some are configured, and no Origin but those configured.
 */
export function createOriginRules({ host, allowOrigin, allowHost }: OriginOptions): OriginRules {
  const isLocal = isLoopback(host);
  const origins = new Set(allowOrigin.map((origin) => normalizeOrigin(origin) ?? origin));
  const hosts = new Set(allowHost.map((name) => name.toLowerCase()));
  const checksHost = !hosts.has('*') && (isLocal || hosts.size > 0);
  return {
    allowsOrigin(origin) {
      if (origin === undefined || origins.has('*')) return true;
      const normal = normalizeOrigin(origin);
      if (normal === undefined) return false;
      return origins.has(normal) || (isLocal && isLoopback(new URL(normal).hostname));
    },
    allowsHost(value) {
      if (!checksHost) return true;
      const host = value?.toLowerCase() ?? '';
      const name = hostForm.exec(host)?.[1];
      if (name === undefined) return false;
      return hosts.has(host) || hosts.has(name) || (isLocal && isLoopback(name));
    },
  };
}

/** True for `localhost`, 127.0.0.0/8 and ::1, the last with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  if (isIP(name) === 4) return name.startsWith('127.');
  return name === '::1' || name === 'localhost';
}

/** `scheme://host:port` in one spelling, or undefined for `null` and for what is no origin. */
function normalizeOrigin(text: string): string | undefined {
  const [, scheme, authority] = /^([a-z][a-z0-9+.-]*):\/\/([^/]*)$/.exec(text.toLowerCase()) ?? [];
  if (scheme === undefined || authority === undefined || !hostForm.test(authority)) return undefined;
  return URL.canParse(`${scheme}://${authority}`)
    ? `${scheme}://${new URL(`${scheme}://${authority}`).host}`
    : undefined;
}
