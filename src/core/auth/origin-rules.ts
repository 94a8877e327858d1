import { isIPv4 } from 'node:net';

/**
 * Protection against DNS rebinding, where a web page makes a browser send requests to a gateway on its user's machine
 * (2025-11-25, basic/transports, "Security Warning"). Both Host and Origin are checked.
 */
export interface OriginRules {
  /**
   * Returns false for a request of a web page whose origin is not allowed. A request without Origin is not from a page.
   */
  allowsOrigin(origin: string | undefined): boolean;
  /** Returns false if the Host header names a host that is not allowed. */
  allowsHost(host: string | undefined): boolean;
}

/** The operator's configuration of hosts and origins. */
export interface OriginOptions {
  /** The address that the gateway is bound to. */
  readonly host: string;
  /** Allowed origins beside the default ones, such as `https://app.example.com`; `*` for all. */
  readonly allowOrigin: readonly string[];
  /** Allowed host names, with or without port, beside the default ones; `*` for all. */
  readonly allowHost: readonly string[];
  /** The URL that clients use. A proxy may pass its host on, so this host is allowed as well. */
  readonly publicUrl?: string | undefined;
}

/** The pattern of `name`, `name:port`, `[v6]` or `[v6]:port`, without userinfo, path or blanks. */
const hostForm = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/;

/**
 * True for a valid Host header (RFC 9110, section 7.2). A proxy could take another part of an invalid one for the host.
 */
export const isHost = (value: string | undefined): boolean => {
  const found = hostForm.exec(value?.toLowerCase() ?? '');
  return found !== null && Number(found[2] ?? 0) <= maxPort;
};

const maxPort = 65_535;

/**
 * Makes the rules for a gateway. A gateway bound to a loopback address allows loopback names as Host and Origin. A
 * gateway bound to another address allows the configured Origins, and the configured Hosts or any Host if none is
 * configured.
 */
export function createOriginRules({ host, allowOrigin, allowHost, publicUrl }: OriginOptions): OriginRules {
  const isLocal = isLoopback(host);
  const origins = new Set(allowOrigin.map((origin) => normalizeOrigin(origin) ?? origin));
  const hosts = new Set(allowHost.map((name) => name.toLowerCase()));
  const mustCheckHost = !hosts.has('*') && (isLocal || hosts.size > 0);
  if (publicUrl !== undefined) hosts.add(new URL(publicUrl).host);
  return {
    allowsOrigin(origin) {
      if (origin === undefined || origins.has('*')) return true;
      const normalized = normalizeOrigin(origin);
      if (normalized === undefined) return false;
      return origins.has(normalized) || (isLocal && isLoopback(new URL(normalized).hostname));
    },
    allowsHost(value) {
      if (!mustCheckHost) return true;
      const host = value?.toLowerCase() ?? '';
      const name = hostForm.exec(host)?.[1];
      if (name === undefined) return false;
      return hosts.has(host) || hosts.has(name) || (isLocal && isLoopback(name));
    },
  };
}

/** True for `localhost`, 127.0.0.0/8 and ::1, with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  // Not `isIP`: for a name, Node.js would compile its pattern of IPv6, which takes milliseconds of each start.
  if (isIPv4(name)) return name.startsWith('127.');
  return name === '::1' || name === 'localhost';
}

/** Returns the canonical spelling of `scheme://host:port`, or undefined for `null` and any text that is no origin. */
function normalizeOrigin(text: string): string | undefined {
  const [, scheme, authority] = /^([a-z][a-z0-9+.-]*):\/\/([^/]*)$/.exec(text.toLowerCase()) ?? [];
  if (scheme === undefined || authority === undefined || !hostForm.test(authority)) return undefined;
  return URL.canParse(`${scheme}://${authority}`)
    ? `${scheme}://${new URL(`${scheme}://${authority}`).host}`
    : undefined;
}
