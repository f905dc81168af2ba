// SPDX-License-Identifier: Apache-2.0
// esbuild treats style sheets as modules.
declare module "*.css";
