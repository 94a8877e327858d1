import type { Otlp, OtlpOptions } from '../../app/features/telemetry.ts';
import { readOtlpSettings } from './otlp-settings.ts';

/** The packages of the SDK, which `package.json` has as optional dependencies. */
const packages = [
  'core',
  'otlp-exporter-base',
  'otlp-transformer',
  'resources',
  'sdk-logs',
  'sdk-metrics',
  'sdk-trace-base',
].map((name) => `@opentelemetry/${name}`);

/**
 * Starts the export to an OpenTelemetry collector, if its variables name one; undefined otherwise. The SDK is loaded only
 * then, because loading it takes a large part of a start. Without its packages, the log says what to install, and the
 * gateway runs on: a cluster may set the variables for all of its programs.
 */
export async function loadOtlp(options: OtlpOptions): Promise<Otlp | undefined> {
  const settings = readOtlpSettings(options.environment);
  if (settings.signals.length === 0) return undefined;
  for (const warning of settings.warnings) options.logger.warn(warning);
  try {
    const { connectOtlp } = await import('./connect-otlp.ts');
    return connectOtlp(settings, options);
  } catch (cause) {
    const missing = missingPackage(cause);
    if (missing === undefined) throw cause;
    options.logger.error(
      { missing, remedy: `npm install ${packages.join(' ')}` },
      'OTLP is off, because an optional package is not installed. Install the packages, install the gateway without --omit=optional, or unset OTEL_EXPORTER_OTLP_ENDPOINT.',
    );
    return undefined;
  }
}

/** The package of OpenTelemetry that was not found; undefined if the import failed for another reason. */
function missingPackage(cause: unknown): string | undefined {
  if (!(cause instanceof Error) || !('code' in cause) || cause.code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  return /'(@opentelemetry\/[\w-]+)/.exec(cause.message)?.[1];
}
