import { describe, expect, it } from 'vitest';
import { readEndpointEvent } from '../../../../src/features/remote/sse/endpoint-event.ts';

const stream = new URL('https://mcp.example:8443/a/sse?key=1');
const hrefOf = (data: string, from = stream) => {
  const read = readEndpointEvent(data, from);
  return read.ok ? read.url.href : undefined;
};

describe('an endpoint', () => {
  it.each([
    ['/messages?id=1', 'https://mcp.example:8443/messages?id=1'],
    ['messages', 'https://mcp.example:8443/a/messages'],
    ['?id=1', 'https://mcp.example:8443/a/sse?id=1'],
    [' /m ', 'https://mcp.example:8443/m'],
    ['HTTPS://MCP.example:8443/m#x', 'https://mcp.example:8443/m'],
    ['//mcp.example:8443/m', 'https://mcp.example:8443/m'],
    ['{"uri": "/messages/1"}', 'https://mcp.example:8443/messages/1'],
    ['/m?mail=a@b', 'https://mcp.example:8443/m?mail=a@b'],
  ])('[R8.01] %s is %s', (data, href) => {
    expect(hrefOf(data)).toBe(href);
  });

  it('[R8.01] on the default port may name it', () => {
    expect(hrefOf('http://a:80/m', new URL('http://a/sse'))).toBe('http://a/m');
  });

  // SSRF is S10 in docs/hardening.md; A07 is the advisory.
  it.each([
    ['another host', '//evil/m'],
    ['another host, with three slashes', '///evil/m'],
    ['the metadata service', 'http://169.254.169.254/latest/meta-data/'],
    ['the metadata service in the same scheme', 'https://169.254.169.254:8443/'],
    ['backslashes', '\\\\evil\\m'],
    ['a slash and a backslash', '/\\evil/m'],
    ['a backslash before the @', 'https://mcp.example:8443\\@evil/'],
    ['a tab, which parsers drop', '/\t/evil/m'],
    ['a line break, which parsers drop', '/\n/evil/m'],
    ['a NUL', '/m\0'],
    ['a host in the place of the user name', 'https://mcp.example:8443@evil/m'],
    ['a user name for the right host', 'https://user@mcp.example:8443/m'],
    ['an empty user name', 'https://@mcp.example:8443/m'],
    ['a user name without a scheme', '//user:password@mcp.example:8443/m'],
    ['another port', 'https://mcp.example:8444/m'],
    ['the default port', 'https://mcp.example/m'],
    ['another scheme', 'http://mcp.example:8443/m'],
    ['the scheme of files', 'file:///etc/passwd'],
    ['the scheme of scripts', 'javascript:alert(1)'],
    ['a Unix socket', 'unix:///run/docker.sock'],
    ['a scheme without slashes', 'http:evil/m'],
    ['a name that ends like ours', 'https://evil-mcp.example:8443/m'],
    ['a name that begins like ours', 'https://mcp.example.evil:8443/m'],
    ['a trailing dot', 'https://mcp.example.:8443/m'],
    ['full-width characters', 'https://mcp．example:8443/m'],
    ['nothing', ''],
    ['JSON of another form', '{"url":"/m"}'],
    ['JSON with a number', '{"uri":1}'],
    ['broken JSON', '{"uri":"/m"'],
    ['another host in JSON', '{"uri":"//evil/m"}'],
    ['no URL', 'https://[/'],
    ['more than it may be long', `/${'x'.repeat(9000)}`],
  ])('[A07] is refused with %s, and nothing of it is repeated', (_, data) => {
    const read = readEndpointEvent(data, stream);
    expect(read).toMatchObject({ ok: false });
    expect(JSON.stringify(read)).not.toMatch(/evil|169|passwd|docker|alert/);
  });
});
