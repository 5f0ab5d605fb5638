#' Differentially private correlations from survey rows
#'
#' The usual path: [dp_preflight()] looks at the table, [dp_release()] spends privacy budget once and returns a
#' release, [dp_bayes_na()] and [dp_mle_nn()] turn the release into correlations at no further cost, and
#' [dp_regress()] into a regression. [dp_erl()] is the non-private yardstick, and [dp_compare()] sets results
#' side by side.
#'
#' All correlations and coefficients speak of latent standard normal variables (a Gaussian copula), not of the
#' variables' own units. Survey weights and the sampling design are not used.
#'
#' @section Random numbers:
#' [set.seed()] governs the posterior draws of [dp_bayes_na()] and [dp_erl()], whose seeds are drawn from R's
#' generator where none is given. It never governs the privacy noise of [dp_release()]: that comes from the
#' operating system, so two releases of one table differ, whatever the seed, and each costs budget.
#'
#' @section Python:
#' The work is done by the Python package dpsurvey; [dp_install()] makes an environment for it. Python starts
#' at the first call of a function that needs it, not when this package is loaded.
#'
#' @importFrom stats coef confint
#' @keywords internal
"_PACKAGE"
