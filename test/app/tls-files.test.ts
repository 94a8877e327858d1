import { expect, it } from 'vitest';
import { readTlsFiles } from '../../src/app/tls-files.ts';

const read = (files: Partial<Parameters<typeof readTlsFiles>[1]>) =>
  readTlsFiles('cluster.tls', { ca: undefined, cert: undefined, key: undefined, ...files });

it('reads nothing where no option is set', () => {
  expect(read({})).toEqual({});
});

it.each([
  ['that cannot be read', { ca: '/no/such/file' }, 'The file of --cluster.tls.ca cannot be read: ENOENT'],
  ['without a certificate', { ca: '/dev/null' }, 'The file of --cluster.tls.ca contains no PEM certificate'],
  [
    'that no connection can use',
    { cert: import.meta.filename, key: import.meta.filename },
    'The files of --cluster.tls.ca, --cluster.tls.cert, --cluster.tls.key cannot be used',
  ],
])('names the options of files %s', (_, files, message) => {
  expect(() => read(files)).toThrow(message);
});
