import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { type PublicBaseUrlOptions, publicBaseUrl } from '../../../src/app/addresses/public-base-url.ts';
import { createOriginRules } from '../../../src/core/auth/origin-rules.ts';
import { certificateFolder } from '../../support/server-certificate.ts';

const optionsFor = (host: string, allowHost: readonly string[] = []): PublicBaseUrlOptions => ({
  host,
  port: 8080,
  allowHost,
  rules: createOriginRules({ host, allowHost, allowOrigin: [] }),
  certificate: undefined,
});

describe('the base of the URLs that are printed', () => {
  it.each([
    ['127.0.0.1', [], 'http://127.0.0.1:8080'],
    ['localhost', [], 'http://localhost:8080'],
    ['::1', [], 'http://[::1]:8080'],
    ['0.0.0.0', [], 'http://127.0.0.1:8080'],
    ['0.0.0.0', ['*'], 'http://127.0.0.1:8080'],
    ['0.0.0.0', ['mcp.example.com', 'localhost'], 'http://localhost:8080'],
    ['0.0.0.0', ['mcp.example.com'], 'http://mcp.example.com:8080'],
    ['0.0.0.0', ['mcp.example.com:9000'], 'http://mcp.example.com:9000'],
    ['127.0.0.1', ['mcp.example.com'], 'http://127.0.0.1:8080'],
  ])('[P-03] on %s with --allow-host %j is one that the gateway answers: %s', (host, allowHost, url) => {
    const options = optionsFor(host, allowHost);
    expect(publicBaseUrl(options).url).toBe(url);
    expect(options.rules.allowsHost(new URL(url).host)).toBe(true);
  });

  it('[P-03] is the public URL, whose host the gateway accepts', () => {
    const publicUrl = 'https://mcp.example.com/tools';
    const rules = createOriginRules({ host: '127.0.0.1', allowHost: [], allowOrigin: [], publicUrl });
    const { url, local, ca } = publicBaseUrl({ ...optionsFor('127.0.0.1'), publicUrl, rules });
    expect([url, local, ca]).toEqual([publicUrl, 'http://127.0.0.1:8080', undefined]);
    expect(rules.allowsHost('mcp.example.com')).toBe(true);
    expect(rules.allowsHost('other.example.com')).toBe(false);
  });
});

describe('the base of URLs with TLS', () => {
  const folder = certificateFolder();
  afterAll(() => folder.remove());

  it.each([
    ['IP:127.0.0.1', 'https://127.0.0.1:8080'],
    ['DNS:mcp.example.com', 'https://mcp.example.com:8080'],
    ['DNS:*.example.com', 'https://127.0.0.1:8080'],
  ])('[P-03] has a host that a certificate for %s is valid for: %s', async (names, url) => {
    const made = await folder.make('first', names);
    const certificate = { cert: readFileSync(made.cert, 'utf8'), key: readFileSync(made.key, 'utf8') };
    // The certificate has signed itself, so clients must be told to trust it.
    expect(publicBaseUrl({ ...optionsFor('0.0.0.0'), certificate }, made.cert)).toEqual({ url, ca: made.cert });
  });
});
