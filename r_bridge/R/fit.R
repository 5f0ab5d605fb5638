#' Posterior of the correlations given a release
#'
#' The noise is part of the likelihood, so intervals say how much the release tells. It takes a release and
#' never rows, and costs no privacy.
#'
#' @param release a `dp_release`.
#' @param draws,chains kept draws of each chain, and number of chains.
#' @param seed seed of the sampler; `NULL` draws one from R's generator, so that [set.seed()] makes the posterior
#'   draws repeatable (the noise of the release never is).
#' @param engine `"gibbs"`, or `"stan"` where CmdStan is installed; `"latent-radius"` is a check of the default for
#'   releases with `"linf"` noise.
#' @param joint also draw from the joint posterior, from which [dp_regress()] computes? It accounts for how counts go
#'   together; without it intervals of coefficients are too long.
#' @param lkj eta of the LKJ(eta) prior: above 1 it prefers weak correlations.
#' @param progress show a progress bar?
#' @return a `dp_posterior`; see [dp_posterior-methods].
#' @export
#' @examplesIf dp_available()
#' release <- suppressWarnings(dp_release(mtcars[c("mpg", "wt", "hp")], epsilon = 5))
#' posterior <- dp_bayes_na(release, draws = 200, seed = 1)
#' posterior
#' summary(posterior)
dp_bayes_na <- function(release, draws = 1000, chains = 4, seed = NULL, engine = "gibbs",
                        joint = TRUE, lkj = 1, progress = interactive()) {
  check_class(release, "dp_release")
  new_result(door("bayes_na", release$json, draws, chains, seed_or_drawn(seed), engine, joint, lkj, progress))
}

#' Point estimate of the correlations from a release
#'
#' Maximum likelihood for each pair, then the nearest correlation matrix. No intervals: [dp_bayes_na()] has them.
#'
#' @param release a `dp_release`.
#' @param adjust `"btgm"` or `"tgm"`: how noisy counts are brought into their range.
#' @return a `dp_estimate`, with methods `print`, `summary`, `coef` and `as.data.frame`.
#' @export
#' @examplesIf dp_available()
#' release <- suppressWarnings(dp_release(mtcars[c("mpg", "wt", "hp")], epsilon = 5))
#' summary(dp_mle_nn(release))
dp_mle_nn <- function(release, adjust = "btgm") {
  check_class(release, "dp_release")
  new_result(door("mle_nn", release$json, adjust))
}

#' The extended rank likelihood: a non-private yardstick
#'
#' Draws correlations under Hoff's (2007) extended rank likelihood from the rows themselves, without noise. The
#' result is NOT PRIVATE and must be guarded like the rows. Ties, ordered factors and missing cells are at home:
#' no row is dropped.
#'
#' @param data a data.frame; cells may be missing.
#' @param columns the variables; all columns by default.
#' @param engine `"sbgcop"`: the package of that name, run here in R. `"r"`: R code of this package with the
#'   same contract. `"native"`: the compiled sampler of the Python package, over a hundred times as fast, which
#'   also moves many latent values together and so mixes where columns have many levels. `"auto"`: sbgcop where
#'   it is installed, else `"r"`; a message says which.
#' @param draws,chains kept draws of each chain, and number of chains.
#' @param burn_in iterations dropped first; `NULL` for 500, or none where the draws are independent (every
#'   column plug-in and complete).
#' @param S0,n0 prior: S ~ inverse Wishart (n0, n0 S0); `NULL` for the identity and p + 2.
#' @param plugin_threshold columns with more distinct values (`NA` counting as one) keep their normal scores;
#'   `Inf` for none.
#' @param odens iterations between kept draws.
#' @param seed `NULL` draws one from R's generator. R's generator is left as it was otherwise. With the same seed
#'   `"r"` and `"sbgcop"` give the same draws here and in Python.
#' @param progress show a progress bar (`"native"` only)?
#' @return a `dp_posterior`, not private; see [dp_posterior-methods].
#' @references Hoff (2007), Annals of Applied Statistics 1, 265-283.
#' @export
#' @examplesIf dp_available()
#' dp_erl(mtcars, c("mpg", "wt", "cyl"), engine = "native", draws = 500, seed = 1)
dp_erl <- function(data, columns = NULL, engine = c("auto", "sbgcop", "r", "native"), draws = 1000, burn_in = NULL,
                   chains = 4, S0 = NULL, n0 = NULL, plugin_threshold = 100, odens = 1, seed = NULL,
                   progress = interactive()) {
  engine <- choose_engine(match.arg(engine))
  table <- table_to_python(data, columns)
  settings <- list(
    draws = draws, burn_in = burn_in, chains = chains, S0 = if (!is.null(S0)) as.double(S0), n0 = n0,
    plugin_threshold = plugin_threshold, odens = odens, seed = seed_or_drawn(seed)
  )
  if (engine == "native") {
    return(new_result(door("erl", table, as_names(columns), c(settings, progress = progress))))
  }
  plan <- door("erl_plan", table, as_names(columns), settings)
  variables <- unlist(plan$variables)
  codes <- matrix(unlist(plan$codes), ncol = length(variables))
  chains <- lapply(unlist(plan$chain_seeds), function(chain_seed) {
    drawn <- erl_draws(
      engine, codes, matrix(unlist(plan$S0), length(variables)), plan$n0, plan$nsamp, odens, plugin_threshold,
      chain_seed
    )
    pair_rows(drawn, keep = draws)
  })
  info <- list(R = as.character(getRversion()))
  if (engine == "sbgcop") info$sbgcop <- as.character(utils::packageVersion("sbgcop"))
  new_result(door("erl_result", table, as_names(columns), settings, engine, unlist(chains), info))
}

choose_engine <- function(engine) {
  found <- requireNamespace("sbgcop", quietly = TRUE)
  if (engine == "sbgcop" && !found) {
    stop("the package sbgcop is not installed; install.packages(\"sbgcop\"), or engine = \"r\" or \"native\"",
      call. = FALSE
    )
  }
  if (engine != "auto") return(engine)
  engine <- if (found) "sbgcop" else "r"
  message("dp_erl: engine \"", engine, "\" taken: sbgcop is ", if (!found) "not ", "installed")
  engine
}

# p x p x iterations, as sbgcop returns it, to a vector: draw after draw, the entries above the diagonal of each
# row by row. R stores columns first, so these are the entries below the diagonal, column by column.
pair_rows <- function(drawn, keep) {
  below <- lower.tri(drawn[, , 1])
  kept <- seq.int(dim(drawn)[3] - keep + 1, dim(drawn)[3])
  as.vector(apply(drawn[, , kept, drop = FALSE], 3, function(R) R[below]))
}

seed_or_drawn <- function(seed) {
  if (is.null(seed)) sample.int(.Machine$integer.max, 1) + 0 else seed
}
